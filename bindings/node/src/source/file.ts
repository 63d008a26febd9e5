/** A file, or anything else with a file descriptor, by plain reads: the next one is under way while the last is used. */

import { close, fstat, open, read } from "node:fs";
import { promisify } from "node:util";
import { fromSystem, MillstreamError } from "../error.js";
import { platform } from "../text.js";
import { PlainSource } from "./source.js";

/** How much one read asks for. */
const READ_BYTES = 256 << 10;

/** How much room is in front of it, for the unfinished record of the read before. */
const HEADROOM = 4 << 10;

const openFile = promisify(open);
const statFile = promisify(fstat);
const closeFile = promisify(close);

export class FileSource extends PlainSource {
  #fd: number | undefined;
  #ahead: Promise<Uint8Array | null> | undefined;
  /** How many bytes of a regular file there have been. */
  #seen = 0;
  /** Memory that nobody looks at any more: fresh memory costs more than the read. */
  #spare: Uint8Array | undefined;

  private constructor(
    readonly name: string,
    fd: number,
    readonly regular: boolean,
    readonly owned: boolean,
  ) {
    super();
    this.#fd = fd;
  }

  /** @throws `open_failed` */
  static async open(path: string): Promise<FileSource> {
    let fd: number;
    try {
      fd = await openFile(path, "r");
    } catch (cause) {
      throw new MillstreamError("open_failed", { stream: path, cause });
    }
    return FileSource.#over(fd, path, true);
  }

  /** A descriptor that stays the caller's. */
  static fd(fd: number): Promise<FileSource> {
    return FileSource.#over(fd, `fd ${fd}`, false);
  }

  static async #over(fd: number, name: string, owned: boolean): Promise<FileSource> {
    try {
      const stat = await statFile(fd);
      if (stat.isDirectory()) throw new MillstreamError("open_failed", { found: "a directory", expected: "a file" });
      return new FileSource(name, fd, stat.isFile(), owned);
    } catch (error) {
      if (owned) await closeFile(fd);
      throw fromSystem(error, "open_failed", { stream: name });
    }
  }

  async read(): Promise<Uint8Array | null> {
    const chunk = await (this.#ahead ?? this.#readOnce());
    this.#ahead = undefined;
    if (chunk === null) {
      await this.#checkLength();
      await this.#closeFile();
    } else if (this.regular) {
      this.#seen += chunk.length;
      this.#ahead = this.#readOnce();
      this.#ahead.catch(() => {});
    }
    return chunk;
  }

  override get headroom(): number {
    return HEADROOM;
  }

  override reuse(chunk: Uint8Array): void {
    if (chunk.buffer.byteLength === HEADROOM + READ_BYTES) this.#spare = new Uint8Array(chunk.buffer);
  }

  override async close(): Promise<void> {
    await this.#ahead?.catch(() => {});
    await this.#closeFile();
  }

  #readOnce(): Promise<Uint8Array | null> {
    const fd = this.#fd;
    if (fd === undefined) return Promise.resolve(null);
    const memory = this.#spare ?? platform.allocate(HEADROOM + READ_BYTES);
    this.#spare = undefined;
    return new Promise((resolve, reject) => {
      const retry = () => {
        read(fd, memory, HEADROOM, READ_BYTES, null, (error, length) => {
          if (error === null) resolve(length === 0 ? null : memory.subarray(HEADROOM, HEADROOM + length));
          // Somebody else made this descriptor non-blocking.
          else if (error.code === "EAGAIN") setTimeout(retry, 1);
          else if (error.code === "EOF") resolve(null);
          else reject(error);
        });
      };
      retry();
    });
  }

  /** A file that became shorter while it was read is no whole file. */
  async #checkLength(): Promise<void> {
    if (!this.regular || !this.owned || this.#fd === undefined) return;
    const { size } = await statFile(this.#fd);
    if (size >= this.#seen) return;
    await this.#closeFile();
    throw new MillstreamError("source_shrank", {
      stream: this.name,
      found: `${size} bytes`,
      expected: `${this.#seen} bytes or more`,
    });
  }

  async #closeFile(): Promise<void> {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined && this.owned) await closeFile(fd);
  }
}

/** A source that has yet to be made, so that what makes it need not be awaited by the caller. */
export class LateSource extends PlainSource {
  #source: Promise<PlainSource> | undefined;
  #made: PlainSource | undefined;
  readonly #make: () => Promise<PlainSource>;

  constructor(
    readonly name: string,
    make: () => Promise<PlainSource>,
  ) {
    super();
    this.#make = make;
  }

  async read(): Promise<Uint8Array | null> {
    this.#source ??= this.#make();
    this.#made ??= await this.#source;
    return this.#made.read();
  }

  override get headroom(): number | undefined {
    return this.#made?.headroom;
  }

  override reuse(chunk: Uint8Array): void {
    this.#made?.reuse(chunk);
  }

  override async close(): Promise<void> {
    const source = await this.#source?.catch(() => undefined);
    await source?.close();
  }
}
