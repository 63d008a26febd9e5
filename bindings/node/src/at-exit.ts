/** Writes the accepted bytes of writers that were not closed when the process exits. Compressed streams get no trailer,
 * because only `close` writes one. Bytes that cannot be written any more are reported, and the process exits with
 * status 1.
 */

import { forgotten } from "./forgotten.js";
import { atExit, type Exiting, type Unclosed, type Writer } from "./writer.js";

const open = new Set<Exiting>();
const unclosed = new Set<Unclosed>();

/** Describes what a writer that was never closed has lost. */
function lost({ name, vanishes }: Unclosed): string {
  const what = vanishes() ? "its output does not appear" : "its last bytes may be missing";
  return `${name}: its writer was never closed, so ${what}; await its \`close\``;
}

/** Reports writers that were collected. Those that exist at the exit are reported then. */
const collected = /* @__PURE__ */ new FinalizationRegistry<Unclosed>((file) => {
  if (unclosed.delete(file)) forgotten.warn?.(lost(file));
});

/** Called by every function that creates a writer which needs this. */
export function useAtExit(): void {
  atExit.keep ??= keep;
  atExit.forget ??= forget;
  atExit.expectClose ??= expectClose;
  atExit.closed ??= closed;
}

function keep(writer: Exiting): void {
  listen();
  open.add(writer);
}

function forget(writer: Exiting): void {
  if (open.delete(writer)) unlisten();
}

function expectClose(writer: Writer, file: Unclosed): void {
  listen();
  unclosed.add(file);
  collected.register(writer, file, file);
}

function closed(file: Unclosed): void {
  collected.unregister(file);
  if (unclosed.delete(file)) unlisten();
}

function listen(): void {
  // Before the exit of sinks themselves.
  if (open.size + unclosed.size === 0) process.on("beforeExit", flushAll).prependListener("exit", endAll);
}

function unlisten(): void {
  if (open.size + unclosed.size === 0) process.off("beforeExit", flushAll).off("exit", endAll);
}

/**
 * The event loop is empty, so there is time to wait. Flushed bytes cannot be lost any more, and are not flushed
 * again.
 */
function flushAll(): void {
  for (const writer of open) {
    if (writer.endsWithTrailer) continue;
    writer.flush().then(
      () => forget(writer),
      ({ message }) => {
        forget(writer);
        fail(message);
      },
    );
  }
}

/** The process exits, by `process.exit` or because a sink never finished. */
function endAll(): void {
  for (const file of unclosed) fail(lost(file));
  for (const writer of open) {
    const missing = writer.endNow();
    if (missing !== null) fail(`${writer.name}: the process ended before it was closed: ${missing}; await its close()`);
  }
}

function fail(message: string): void {
  process.stderr.write(`millstream: ${message}\n`);
  process.exitCode ||= 1;
}
