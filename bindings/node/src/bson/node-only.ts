/**
 * The Node-only parts of this module. Its entry point stores it here (`node.ts`), so that a browser's bundle contains
 * none of it.
 */

import type { Reader } from "../reader.js";
import type { Remote } from "../url.js";
import type { DocumentFile } from "./file.js";
import type { Filler } from "./filler.js";
import type { Passed } from "./pass.js";

export const nodeOnly: {
  /** Opens a file of one document. */
  openDocument?: ((path: string | URL) => Promise<DocumentFile>) | undefined;
  /** Opens a reader for a file or an object. */
  open?: ((path: string | URL | Remote) => Reader<Uint8Array>) | undefined;
  /** Fills columns in the native part, if installed. */
  filler?: (plan: string) => Filler | undefined;
  /** Checks documents in the native part, if installed. */
  checker?: () => ((bytes: Uint8Array) => Passed) | undefined;
  /** The reason why the native part is not installed. */
  reason?: () => string | undefined;
} = {};
