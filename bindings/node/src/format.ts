/** The compressed formats: which format a name implies, and which first bytes the native part should examine. The cases
 * are in `vectors/sniff.tsv`.
 */

/** The first bytes of formats that the native part decodes, or recognises and rejects. It examines them further. */
const MAGICS: readonly (readonly number[])[] = [
  [0x1f, 0x8b, 0x08],
  [0x28, 0xb5, 0x2f, 0xfd],
  [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00],
  [0x04, 0x22, 0x4d, 0x18],
  [0x42, 0x5a, 0x68],
];

/** Returns whether bytes may be compressed. If not, they are delivered unchanged. */
export function looksCompressed(bytes: Uint8Array): boolean {
  const begins = (magic: readonly number[]) => magic.every((byte, at) => bytes[at] === byte);
  const isSkippable = (bytes[0] & 0xf0) === 0x50 && begins([bytes[0], 0x2a, 0x4d, 0x18]);
  return isSkippable || MAGICS.some(begins) || (bytes.length === 2 && begins([0x1f, 0x8b]));
}

/** The format that a file name extension implies, in upper or lower case. */
export type Promised =
  | { readonly format: "gzip" | "bgzf" | "zstd" }
  | { readonly format?: undefined; readonly unreadable: string };

const ENDINGS: { readonly [ending: string]: Promised | undefined } = {
  gz: { format: "gzip" },
  bgz: { format: "bgzf" },
  bgzf: { format: "bgzf" },
  zst: { format: "zstd" },
  xz: { unreadable: "xz" },
  lz4: { unreadable: "lz4" },
  bz2: { unreadable: "bzip2" },
  zz: { unreadable: "zlib" },
  zlib: { unreadable: "zlib" },
  lzma: { unreadable: "lzma" },
  lz: { unreadable: "lzip" },
  lzo: { unreadable: "lzop" },
  br: { unreadable: "brotli" },
  z: { unreadable: "compress" },
};

/** Returns the format that a file name implies, if any. */
export function promisedBy(name: string): Promised | undefined {
  const file = name.slice(name.lastIndexOf("/") + 1);
  const dot = file.lastIndexOf(".");
  return dot > 0 ? ENDINGS[file.slice(dot + 1).toLowerCase()] : undefined;
}
