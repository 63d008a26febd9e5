/** Writes the accepted bytes of writers that were not closed when the process exits. Compressed streams get no trailer,
 * because only `close` writes one. Bytes that cannot be written any more are reported, and the process exits with
 * status 1. Imported for its effect.
 */

import { atExit, endsWithTrailer, endWriterNow, type Writer } from "./writer.js";

const open = new Set<Writer>();

atExit.keep = (writer) => {
  // Before the exit of sinks themselves.
  if (open.size === 0) process.on("beforeExit", flushAll).prependListener("exit", endAll);
  open.add(writer);
};

atExit.forget = (writer) => {
  if (open.delete(writer) && open.size === 0) process.off("beforeExit", flushAll).off("exit", endAll);
};

/**
 * The event loop is empty, so there is time to wait. Flushed bytes cannot be lost any more, and are not flushed
 * again.
 */
function flushAll(): void {
  for (const writer of open) {
    if (endsWithTrailer(writer)) continue;
    writer.flush().then(
      () => atExit.forget?.(writer),
      ({ message }) => {
        atExit.forget?.(writer);
        fail(message);
      },
    );
  }
}

/** The process exits, by `process.exit` or because a sink never finished. */
function endAll(): void {
  for (const writer of open) {
    const lost = endWriterNow(writer);
    if (lost !== null) fail(`${writer.name}: the process ended before it was closed: ${lost}; await its close()`);
  }
}

function fail(message: string): void {
  process.stderr.write(`millstream: ${message}\n`);
  process.exitCode ||= 1;
}
