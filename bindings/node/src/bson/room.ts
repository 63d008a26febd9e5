/** What only Node has of this room. Its entry puts it here (`node.ts`), so that a browser's bundle has nothing of it. */

import type { Reader } from "../reader.js";
import type { Checked } from "./check.js";
import type { Filler, FillerOptions } from "./columns/filler.js";
import type { Field } from "./columns/schema.js";
import type { DocumentFile } from "./file.js";

export const room: {
  /** The document of a file. */
  openDocument?: (path: string | URL) => Promise<DocumentFile>;
  /** The reader of a file. */
  open?: (path: string | URL) => Reader<Uint8Array>;
  /** What the native part fills columns with, if it is there. */
  filler?: (fields: readonly Field[], options: FillerOptions) => Filler | undefined;
  /** What checks documents in it. */
  checker?: () => ((bytes: Uint8Array) => Checked) | undefined;
  /** Why it is not. */
  reason?: () => string | undefined;
} = {};
