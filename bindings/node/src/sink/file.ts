/** Sinks for file descriptors and for files that appear complete. */

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

/** The interval in milliseconds at which a FIFO without a reader, or a full pipe, is retried. */
const FIFO_PAUSE = 10;
const FULL_PAUSE = 1;

/** The number of times a full pipe is retried when the process exits. */
const SYNC_PATIENCE = 2000;

/** Writes all bytes of each chunk to a descriptor, until it is stopped. */
class Output {
  /** The number of bytes that the system has accepted. */
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
          // The pipe or terminal is full and in non-blocking mode, as Node itself creates them.
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

  /** Stops a write that waits for a reader. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  /** Settles when no write is in progress. */
  async idle(): Promise<void> {
    await this.#writing.catch(() => {});
  }
}

/** A file descriptor that the caller owns. */
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

/** The file to which the bytes are written. */
interface Target {
  readonly fd: number;
  /** The temporary file and the file that it becomes; `undefined` if the file is written in place. */
  readonly temporary?: string;
  readonly final?: string;
  /** The permissions of the existing file. */
  readonly mode?: number;
}

/** The existing temporary files, which are removed when the process exits. */
const temporaries = new Set<string>();

function removeTemporaries(): void {
  for (const path of temporaries) {
    try {
      unlinkSync(path);
    } catch {
      // The file is gone already.
    }
  }
}

/** A file that appears complete when it is finished. Until then, the bytes are in a temporary file next to it, whose
 * name starts with a dot. Symbolic links are followed, and permissions are kept. Anything but a regular file is written
 * directly and without blocking, because a FIFO without a reader would block a thread indefinitely.
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
      // The result of close matters: some file systems report a full disk there.
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
      // The documented form of names, by which leftovers of a killed process can be found.
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
        // No process has opened the FIFO for reading yet.
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
