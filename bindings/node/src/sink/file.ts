/** File descriptors as sinks, and files that appear complete. */

import { randomBytes } from "node:crypto";
import {
  chmod,
  close,
  constants,
  open,
  realpath,
  rename,
  type Stats,
  stat,
  unlink,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isatty } from "node:tty";
import { promisify } from "node:util";
import { MillstreamError } from "../error.js";
import type { ByteSink } from "./sink.js";

const openFile = promisify(open);
const closeFile = promisify(close);
const statFile = promisify(stat);
const renameFile = promisify(rename);
const unlinkFile = promisify(unlink);
const changeMode = promisify(chmod);
const realPath = promisify(realpath);

/** How long a FIFO that no process reads, or a full pipe, is left alone before it is asked again, in milliseconds. */
const FIFO_PAUSE = 10;
const FULL_PAUSE = 1;

/** How often a full pipe is retried when the process ends. */
const SYNC_PATIENCE = 2000;

/** What is written to a descriptor: all of each chunk, until that is not wanted any more. */
class Output {
  /** How many bytes the system has taken. */
  taken = 0;
  #isGivenUp = false;
  #writing: Promise<void> = Promise.resolve();

  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  write(fd: number, chunk: Uint8Array): Promise<void> {
    this.#writing = new Promise((resolve, reject) => {
      let at = 0;
      const next = () => {
        if (this.#isGivenUp) {
          reject(new MillstreamError("closed"));
          return;
        }
        write(fd, chunk, at, chunk.length - at, null, (error, written) => {
          // A pipe or terminal that is in non-blocking mode, as Node itself makes them, and full.
          if (error?.code === "EAGAIN") setTimeout(next, FULL_PAUSE);
          else if (error !== null) reject(error);
          else {
            this.taken += written;
            at += written;
            if (at === chunk.length) resolve();
            else next();
          }
        });
      };
      next();
    });
    return this.#writing;
  }

  writeSync(fd: number, chunk: Uint8Array): boolean {
    for (let at = 0, left = SYNC_PATIENCE; at < chunk.length; ) {
      try {
        at += writeSync(fd, chunk, at);
      } catch (error) {
        if ((error as { code?: unknown }).code !== "EAGAIN" || left-- === 0) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PAUSE);
      }
    }
    return true;
  }

  /** Ends a write that waits for a reader. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  /** Settles when no write is under way. */
  async idle(): Promise<void> {
    await this.#writing.catch(() => {});
  }
}

/** A file descriptor that stays the caller's. */
export class FdSink implements ByteSink {
  readonly #output = new Output();

  constructor(
    readonly fd: number,
    readonly name: string,
  ) {}

  get isTerminal(): boolean {
    return isatty(this.fd);
  }

  get taken(): number {
    return this.#output.taken;
  }

  write(chunk: Uint8Array): Promise<void> {
    return this.#output.write(this.fd, chunk);
  }

  writeSync(chunk: Uint8Array): boolean {
    return this.#output.writeSync(this.fd, chunk);
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {
    this.#output.giveUp();
  }
}

/** Where the bytes go meanwhile. */
interface Target {
  readonly fd: number;
  /** The temporary file and the file that it becomes; nothing if the file is written in place. */
  readonly temporary?: string;
  readonly final?: string;
  /** The permissions of the file that is there already. */
  readonly mode?: number;
}

/** The existing temporary files: their remains are removed when the process ends. */
const temporaries = new Set<string>();

function removeTemporaries(): void {
  for (const path of temporaries) {
    try {
      unlinkSync(path);
    } catch {
      // It has gone already.
    }
  }
}

/**
 * A file that appears complete when it is finished: until then the bytes are in a temporary file next to it, whose name
 * begins with a dot. A symbolic link is followed, permissions are kept. Anything but a regular file is written
 * directly, and no thread ever waits for it: a FIFO without a reader would block it indefinitely.
 */
export class PathSink implements ByteSink {
  readonly isNothingAtExit = true;
  readonly #output = new Output();
  readonly #target: Promise<Target>;
  #isInPlace = false;
  #done = false;

  constructor(readonly name: string) {
    this.#target = this.#open();
    this.#target.catch(() => {});
  }

  get taken(): number {
    return this.#output.taken;
  }

  get vanishes(): boolean {
    return !this.#isInPlace;
  }

  async write(chunk: Uint8Array): Promise<void> {
    const { fd } = await this.#target;
    await this.#output.write(fd, chunk);
  }

  async finish(): Promise<void> {
    const { fd, temporary, final, mode } = await this.#target;
    this.#done = true;
    try {
      // The result of close counts: on some file systems a full disk is reported there.
      await closeFile(fd);
      if (temporary !== undefined && final !== undefined) {
        if (mode !== undefined) await changeMode(temporary, mode);
        await renameFile(temporary, final);
      }
    } catch (error) {
      if (temporary !== undefined) await unlinkFile(temporary).catch(() => {});
      throw error;
    } finally {
      forget(temporary);
    }
  }

  async abandon(): Promise<void> {
    this.#output.giveUp();
    const target = await this.#target.catch(() => undefined);
    if (target === undefined || this.#done) return;
    this.#done = true;
    await this.#output.idle();
    await closeFile(target.fd).catch(() => {});
    if (target.temporary === undefined) return;
    await unlinkFile(target.temporary).catch(() => {});
    forget(target.temporary);
  }

  async #open(): Promise<Target> {
    const path = this.name;
    try {
      const there = await statFile(path).catch((error) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      if (there?.isDirectory()) throw new MillstreamError("open_failed", { found: "a directory", expected: "a file" });
      if (there !== undefined && !there.isFile()) {
        this.#isInPlace = true;
        return { fd: await this.#openInPlace(path, there) };
      }
      const final = there === undefined ? path : await realPath(path);
      // The form that README documents, by which leftovers of a process that was killed are found.
      const random = randomBytes(3).toString("hex");
      const temporary = join(dirname(final), `.${basename(final)}.millstream-${random}.tmp`);
      const fd = await openFile(temporary, "wx");
      if (temporaries.size === 0) process.on("exit", removeTemporaries);
      temporaries.add(temporary);
      return { fd, temporary, final, mode: there && there.mode & 0o7777 };
    } catch (error) {
      if (error instanceof MillstreamError) throw error.at({ stream: path });
      throw new MillstreamError("open_failed", { stream: path, cause: error });
    }
  }

  async #openInPlace(path: string, there: Stats): Promise<number> {
    for (;;) {
      if (this.#output.isGivenUp) throw new MillstreamError("closed");
      try {
        return await openFile(path, constants.O_WRONLY | (constants.O_NONBLOCK ?? 0));
      } catch (error) {
        // No process reads it yet.
        if (!there.isFIFO() || (error as { code?: unknown }).code !== "ENXIO") throw error;
      }
      await sleep(FIFO_PAUSE);
    }
  }
}

function forget(temporary: string | undefined): void {
  if (temporary === undefined) return;
  temporaries.delete(temporary);
  if (temporaries.size === 0) process.off("exit", removeTemporaries);
}
