/** The Node-only parts of this module. Its entry point stores it here (`node.ts`), so that a browser's bundle contains none of it. */

import type { Reader } from "../reader.js";
import type { Filler } from "./columns/filler.js";
import type { DocumentFile } from "./file.js";
import type { Passed } from "./pass.js";

export const room: {
  /** The document of a file. */
  openDocument?: (path: string | URL) => Promise<DocumentFile>;
  /** The reader of a file. */
  open?: (path: string | URL) => Reader<Uint8Array>;
  /** Fills columns in the native part, if installed. */
  filler?: (plan: string) => Filler | undefined;
  /** Checks documents in it. */
  checker?: () => ((bytes: Uint8Array) => Passed) | undefined;
  /** Why it is not installed. */
  reason?: () => string | undefined;
} = {};
