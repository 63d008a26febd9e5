/** File descriptors as sinks, and files that appear whole. */

import { randomBytes } from "node:crypto";
import { chmod, close, open, realpath, rename, stat, unlink, write } from "node:fs";
import { basename, dirname, join } from "node:path";
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

/** Writes all of a chunk. */
function writeAll(fd: number, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    let at = 0;
    const next = () => {
      write(fd, chunk, at, chunk.length - at, null, (error, written) => {
        // A pipe or terminal that is in non-blocking mode, as Node itself makes them, and full.
        if (error?.code === "EAGAIN") setTimeout(next, 1);
        else if (error !== null) reject(error);
        else {
          at += written;
          if (at === chunk.length) resolve();
          else next();
        }
      });
    };
    next();
  });
}

/** A file descriptor that stays the caller's. */
export class FdSink implements ByteSink {
  constructor(
    readonly fd: number,
    readonly name: string,
  ) {}

  write(chunk: Uint8Array): Promise<void> {
    return writeAll(this.fd, chunk);
  }

  async finish(): Promise<void> {}

  async abandon(): Promise<void> {}
}

/** Where the bytes go meanwhile. */
interface Target {
  readonly fd: number;
  /** The temporary file and the file that it becomes; nothing where it is written in place. */
  readonly temporary?: string;
  readonly final?: string;
  /** The permissions of the file that is there already. */
  readonly mode?: number;
}

/**
 * A file that appears whole when it is finished: until then the bytes are in a temporary file beside it, whose name begins
 * with a dot. A symbolic link is followed, permissions are kept. What is no regular file is written directly.
 */
export class PathSink implements ByteSink {
  readonly #target: Promise<Target>;
  #done = false;

  constructor(readonly name: string) {
    this.#target = openTarget(name);
    this.#target.catch(() => {});
  }

  async write(chunk: Uint8Array): Promise<void> {
    const { fd } = await this.#target;
    await writeAll(fd, chunk);
  }

  async finish(): Promise<void> {
    const { fd, temporary, final, mode } = await this.#target;
    this.#done = true;
    try {
      // What the system says when a file is closed is heard: on some file systems a full disk shows there.
      await closeFile(fd);
      if (temporary !== undefined && final !== undefined) {
        if (mode !== undefined) await changeMode(temporary, mode);
        await renameFile(temporary, final);
      }
    } catch (error) {
      if (temporary !== undefined) await unlinkFile(temporary).catch(() => {});
      throw error;
    }
  }

  async abandon(): Promise<void> {
    const target = await this.#target.catch(() => undefined);
    if (target === undefined || this.#done) return;
    this.#done = true;
    await closeFile(target.fd).catch(() => {});
    if (target.temporary !== undefined) await unlinkFile(target.temporary).catch(() => {});
  }
}

async function openTarget(path: string): Promise<Target> {
  try {
    const there = await statFile(path).catch((error) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
    if (there?.isDirectory()) throw new MillstreamError("open_failed", { found: "a directory", expected: "a file" });
    if (there !== undefined && !there.isFile()) return { fd: await openFile(path, "w") };
    const final = there === undefined ? path : await realPath(path);
    const temporary = join(dirname(final), `.${basename(final)}.${randomBytes(6).toString("hex")}`);
    const fd = await openFile(temporary, "wx");
    return { fd, temporary, final, mode: there && there.mode & 0o7777 };
  } catch (error) {
    if (error instanceof MillstreamError) throw error.at({ stream: path });
    throw new MillstreamError("open_failed", { stream: path, cause: error });
  }
}
