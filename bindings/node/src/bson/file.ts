/** Reads a file of one document, such as the weights of a model. Only the values that you access are read.
 *
 * The lengths in a document lead from member to member, so a lookup reads a few KiB, and an array is read directly into
 * its own memory. This is as fast as a mapping, but with a mapping, a file that shrinks would crash the process.
 */

import { type FileHandle, open } from "node:fs/promises";
import { IS_BIG_ENDIAN } from "../endian.js";
import { fromSystem, MillstreamError } from "../error.js";
import {
  DOCUMENT_INVALID,
  DOCUMENT_TRUNCATED,
  IO,
  KEY_MISSING,
  type Kind,
  OPEN_FAILED,
  SHAPE_MISMATCH,
  SOURCE_SHRANK,
} from "../errors.js";
import { checkOptions } from "../options.js";
import { pathOf } from "../path.js";
import { platform } from "../text.js";
import { DECODE_RULES, type DecodeOptions, decode } from "./decode.js";
import { splitPath } from "./path.js";
import { LAYOUTS, TYPES } from "./types.js";

/** The number of bytes of the file that are examined at once. */
const WINDOW = 16 << 10;

/** The maximum size of one read; some systems refuse larger ones. */
const MOST_READ = 1 << 30;

/** The location of a value. */
interface Place {
  readonly type: number;
  readonly start: number;
  readonly end: number;
}

/** The supported arrays of numbers. */
type NumberArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** The class of an array of numbers, such as `Float32Array`. */
export interface NumberArrayClass<A extends NumberArray> {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): A;
}

/** A document in a file. Paths are keys and positions separated by dots; the empty path is the document itself. */
export class DocumentFile {
  /** The path of the file. */
  readonly name: string;
  readonly #file: FileHandle;
  readonly #length: number;
  #window = new Uint8Array(0);
  #windowAt = 0;

  private constructor(name: string, file: FileHandle, length: number) {
    this.name = name;
    this.#file = file;
    this.#length = length;
  }

  /** @throws `open_failed`; `document_invalid` and `document_truncated` if its length is not the length of the file. */
  static async open(path: string | URL): Promise<DocumentFile> {
    const name = pathOf("bson.open", path);
    let file: FileHandle | undefined;
    try {
      file = await open(name, "r");
      const stat = await file.stat();
      if (!stat.isFile()) {
        throw new MillstreamError(OPEN_FAILED, { found: "something else", expected: "a regular file" });
      }
      const opened = new DocumentFile(name, file, stat.size);
      const { end } = await opened.#document(0, stat.size);
      if (end < stat.size)
        opened.#fail(DOCUMENT_INVALID, end, `${bytesText(stat.size - end)} after the document`, "its end");
      return opened;
    } catch (error) {
      await file?.close();
      throw fromSystem(error, OPEN_FAILED, { stream: name });
    }
  }

  /** Returns the keys of the document or array at this path.
   *
   * @throws `key_missing`; `shape_mismatch` for anything else.
   */
  async keys(path = ""): Promise<string[]> {
    const place = await this.#find(path);
    if (!isInside(place.type)) this.#mismatch(place, "a document or an array");
    const keys: string[] = [];
    for await (const { key } of this.#members(place)) keys.push(key);
    return keys;
  }

  /** Returns whether there is a value at this path. */
  async has(path: string): Promise<boolean> {
    return (await this.#follow(splitPath(path))) !== undefined;
  }

  /** Returns the value at this path, as from `bson.decode`; for the empty path, the whole document.
   *
   * @throws `key_missing`; the errors of `bson.decode`.
   */
  async get(path = "", options: DecodeOptions = {}): Promise<unknown> {
    checkOptions("get", options, [DECODE_RULES]);
    const { type, start, end } = await this.#find(path);
    if (start === 0) {
      const bytes = new Uint8Array(end);
      await this.#read(0, bytes);
      return decode(bytes, options);
    }
    // The value becomes the only member of a document, with an empty key.
    const FRONT = 6;
    const bytes = new Uint8Array(FRONT + end - start + 1);
    new DataView(bytes.buffer).setInt32(0, bytes.length, true);
    bytes[4] = type;
    await this.#read(start, bytes.subarray(FRONT, -1));
    try {
      return decode(bytes, options)[""];
    } catch (error) {
      if (!(error instanceof MillstreamError) || error.offset === undefined) throw error;
      const { found, expected, offset, path: inside } = error;
      // The value is after the empty key.
      const whole = [path, ...(inside === undefined ? [] : [inside.replace(/^""\.?/, "")])].filter(
        (part) => part !== "",
      );
      throw new MillstreamError(error, {
        stream: this.name,
        found,
        expected,
        offset: start + offset - FRONT,
        path: whole.join("."),
      });
    }
  }

  /** Returns the binary data at this path as little-endian numbers; for a vector (subtype 9), the numbers after its
   * header.
   *
   * @throws `key_missing`; `shape_mismatch` for anything else, or if the number of bytes is not a multiple of the size
   * of a number.
   */
  async array<A extends NumberArray>(path: string, type: NumberArrayClass<A>): Promise<A> {
    const place = await this.#find(path);
    if (place.type !== 0x05) this.#mismatch(place, "numbers as bytes");
    // The length, the subtype, and the header of a vector.
    const head = (await this.#look(place.start, Math.min(7, place.end - place.start))).slice(4);
    const subtype = head[0];
    // The old subtype contains its length twice, and a vector starts with its kind.
    const skipped = subtype === 2 ? 4 : subtype === 9 ? 2 : 0;
    const [start, size] = [place.start + 5 + skipped, type.BYTES_PER_ELEMENT];
    const length = place.end - start;
    if (subtype === 9 && !(length >= 0 && VECTORS[`${head[1]} ${head[2]}`] === type.name)) {
      const header = Array.from(head.subarray(1), byteText).join(" ");
      this.#fail(SHAPE_MISMATCH, place.start, `a vector with the header ${header}`, `one for ${type.name}`);
    }
    if (length < 0 || length % size !== 0) {
      this.#fail(
        SHAPE_MISMATCH,
        place.start,
        bytesText(Math.max(length, 0)),
        `a multiple of ${size}, the size of a number`,
      );
    }
    const target = platform.allocate(length);
    await this.#read(start, target);
    if (IS_BIG_ENDIAN) for (let at = 0; at < length; at += size) target.subarray(at, at + size).reverse();
    return new type(target.buffer);
  }

  /** Closes the file. This can be repeated. */
  async close(): Promise<void> {
    await this.#file.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #find(path: string): Promise<Place> {
    const found = await this.#follow(splitPath(path));
    if (found !== undefined) return found;
    throw new MillstreamError(KEY_MISSING, {
      stream: this.name,
      found: "no such member",
      expected: `one at ${path}`,
    });
  }

  async #follow(keys: readonly string[]): Promise<Place | undefined> {
    let place: Place | undefined = { type: 0x03, start: 0, end: this.#length };
    for (const key of keys) {
      if (place === undefined || !isInside(place.type)) return undefined;
      place = await this.#member(place, key);
    }
    return place;
  }

  async #member(inside: Place, wanted: string): Promise<Place | undefined> {
    let position = 0;
    for await (const { key, place } of this.#members(inside)) {
      // In an array, the stored keys are ignored.
      if ((inside.type === 0x04 ? String(position++) : key) === wanted) return place;
    }
    return undefined;
  }

  /** Yields the members of the document at a position. Values are skipped by their lengths. */
  async *#members({ start, end }: Place): AsyncGenerator<{ key: string; place: Place }> {
    const document = await this.#document(start, end);
    const last = document.end - 1;
    for (let at = start + 4; at < last; ) {
      const [type] = await this.#look(at, 1);
      if (TYPES[type] === undefined) {
        const expected = "the type of an element, or the end at the document's length";
        this.#fail(DOCUMENT_INVALID, at, byteText(type), expected);
      }
      const keyEnd = await this.#nul(at + 1, last);
      const bytes = await this.#look(at + 1, keyEnd - at - 1);
      const key = platform.decode(bytes, 0, bytes.length);
      const place = { type, start: keyEnd + 1, end: await this.#end(type, keyEnd + 1, last) };
      yield { key, place };
      at = place.end;
    }
  }

  /** Returns the location of the document at `start`, which ends at `limit` or before. */
  async #document(start: number, limit: number): Promise<Place> {
    const length = await this.#lengthAt(start, 5, 0, limit);
    const end = start + length;
    const [last] = await this.#look(end - 1, 1);
    if (last !== 0) {
      this.#fail(DOCUMENT_INVALID, end - 1, `byte ${byteText(last)}`, "a zero byte at the end that the length gives");
    }
    return { type: 0x03, start, end };
  }

  /** Returns the end of a value of this type. */
  async #end(type: number, start: number, limit: number): Promise<number> {
    const layout = LAYOUTS[type]!;
    switch (layout) {
      case "document":
        return start + (await this.#lengthAt(start, 5, 0, limit));
      case "binary":
        return start + 5 + (await this.#lengthAt(start, 0, 5, limit));
      case "two_c_strings":
        return (await this.#nul((await this.#nul(start, limit)) + 1, limit)) + 1;
      case "text_and_document":
        return start + (await this.#lengthAt(start, 14, 0, limit));
      case "text":
        return start + 4 + (await this.#lengthAt(start, 1, 4, limit));
      case "text_and_id":
        return this.#end(0x07, start + 4 + (await this.#lengthAt(start, 1, 4, limit)), limit);
      default: {
        const size: number = layout;
        if (size > limit - start) this.#fail(DOCUMENT_TRUNCATED, start, bytesText(limit - start), bytesText(size));
        return start + size;
      }
    }
  }

  /** Returns the length that is stored here, for data that starts this many bytes later. */
  async #lengthAt(at: number, least: number, after: number, limit: number): Promise<number> {
    const left = limit - at;
    if (left < 4) this.#fail(DOCUMENT_TRUNCATED, at, bytesText(left), bytesText(4));
    const bytes = await this.#look(at, 4);
    const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getInt32(0, true);
    if (length >= least && length <= left - after) return length;
    const found = `the length ${length} with ${bytesText(left)} left`;
    const kind = length < least ? DOCUMENT_INVALID : DOCUMENT_TRUNCATED;
    return this.#fail(kind, at, found, `a length of ${least} or more that fits in the remaining bytes`);
  }

  /** Returns the position of the first zero byte. */
  async #nul(start: number, limit: number): Promise<number> {
    for (let at = start; at < limit; ) {
      const bytes = await this.#look(at, Math.min(256, limit - at));
      const found = bytes.indexOf(0);
      if (found >= 0) return at + found;
      at += bytes.length;
    }
    return this.#fail(
      DOCUMENT_INVALID,
      start,
      "an unterminated key or pattern",
      "a zero byte before the document's end",
    );
  }

  /** Reads this many bytes, which exist. */
  async #look(at: number, count: number): Promise<Uint8Array> {
    const inside = at - this.#windowAt;
    if (inside < 0 || inside + count > this.#window.length) {
      const window = new Uint8Array(Math.min(Math.max(WINDOW, count), this.#length - at));
      await this.#read(at, window);
      this.#window = window;
      this.#windowAt = at;
      return window.subarray(0, count);
    }
    return this.#window.subarray(inside, inside + count);
  }

  /** @throws `source_shrank`, `io` */
  async #read(at: number, target: Uint8Array): Promise<void> {
    for (let done = 0; done < target.length; ) {
      const length = Math.min(target.length - done, MOST_READ);
      const { bytesRead } = await this.#file.read(target, done, length, at + done).catch((error) => {
        throw fromSystem(error, IO, { stream: this.name });
      });
      if (bytesRead === 0) {
        const found = bytesText(at + done);
        throw new MillstreamError(SOURCE_SHRANK, { stream: this.name, found, expected: bytesText(this.#length) });
      }
      done += bytesRead;
    }
  }

  #mismatch({ type, start }: Place, expected: string): never {
    return this.#fail(SHAPE_MISMATCH, start, `a value of type ${TYPES[type]}`, expected);
  }

  #fail(kind: Kind, offset: number, found: string, expected: string): never {
    throw new MillstreamError(kind, { stream: this.name, offset, found, expected });
  }
}

/** Maps the headers of vectors to the classes of their numbers. */
const VECTORS: { readonly [header: string]: string | undefined } = { "3 0": "Int8Array", "39 0": "Float32Array" };

function bytesText(count: number): string {
  return count === 1 ? "1 byte" : `${count} bytes`;
}

const byteText = (byte: number) => `0x${byte.toString(16).padStart(2, "0")}`;

function isInside(type: number): boolean {
  return type === 0x03 || type === 0x04;
}
