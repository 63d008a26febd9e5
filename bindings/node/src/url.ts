/** URLs of objects, which are accepted like paths of files. */

import { MillstreamError, misuse } from "./error.js";
import { UNSUPPORTED } from "./errors.js";

/** The native part's description of an object, by a key that both builds of this package use. */
export const DESCRIPTION: unique symbol = /* @__PURE__ */ Symbol.for("millstream.remote") as never;

/** An object of a web server or an object store, and the options of its requests: the result of `remote`. */
export interface Remote {
  /** The URL as messages show it: without user, password, query and fragment, which may be secret. */
  readonly name: string;
  readonly [DESCRIPTION]: object;
}

/** As the core decides it; the cases are in `vectors/urls.tsv`. */
const BEGINNING = /^(https?|s3|gs|az):\/\//i;

/** Returns the URL of an object, or `undefined` for a path or anything else. */
export function urlOf(call: string, place: unknown): string | undefined {
  if (typeof place === "string") return BEGINNING.test(place) ? place : undefined;
  if (!(place instanceof URL) || !BEGINNING.test(place.href)) return undefined;
  if (place.protocol.startsWith("http")) return place.href;
  try {
    // A `URL` encodes characters of the key, such as spaces.
    return decodeURIComponent(place.href);
  } catch (cause) {
    const found = "a URL of a store whose percent-encoding is invalid";
    throw misuse({ stream: call, found, expected: "a string, in which the key is not encoded", cause });
  }
}

/** Returns whether this is the result of `remote`. */
export function isRemote(place: unknown): place is Remote {
  return typeof place === "object" && place !== null && DESCRIPTION in place;
}

/** Throws if this is a URL, for calls that need a file. */
export function refuseUrl(call: string, place: unknown): void {
  if (!isRemote(place) && urlOf(call, place) === undefined) return;
  const expected = "the path of a file, which can be read at any position";
  throw new MillstreamError(UNSUPPORTED, { stream: call, found: "a URL", expected });
}
