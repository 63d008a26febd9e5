/** Objects of web servers and object stores, which the native part reads and writes. */

import { misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import { type NativeOptions, type NativeRemote, nativeOptions, neededBinding } from "./native.js";
import { refusal } from "./native-thread.js";
import { type Check, checkOptions, type Tables } from "./options.js";
import { pathOf } from "./path.js";
import { REMOTE_SETTINGS, type RemoteSettings } from "./settings.js";
import { DESCRIPTION, isRemote, type Remote, urlOf } from "./url.js";

/** Options of `remote`. */
export interface RemoteOptions extends RemoteSettings {
  /** Headers of each request, such as `Authorization`: an object, pairs of a name and a value, or `Headers`. They are not
   * sent to another host after a redirect. Their values are not shown in messages.
   *
   * Headers that describe an object are sent with the request that creates it, and with no other: `Content-Type` and
   * other headers of the content, `Cache-Control`, `x-amz-meta-…`, `x-amz-storage-class`, `x-amz-tagging`, `x-amz-acl`,
   * `x-amz-server-side-encryption`.
   */
  headers?: { readonly [name: string]: string } | Iterable<readonly [name: string, value: string]> | undefined;
}

/** `pairsOf` checks them, because a message must not show their values. */
const HEADERS: Check = { expected: "", accepts: () => true };
const REMOTE_RULES: Tables<RemoteOptions> = [REMOTE_SETTINGS, { headers: HEADERS }];

/**
 * Describes an object of a web server or an object store, with options for its requests: `https://…`, `http://…`,
 * `s3://BUCKET/KEY`, `gs://BUCKET/KEY` or `az://CONTAINER/KEY`. It is accepted like a path by `open`, `Writer.path`,
 * `planSplits`, `columns` and `bson.columnBatches`, any number of times.
 * Nothing is opened here. Without options, those functions accept the URL itself.
 *
 * ```js
 * const table = remote("https://example.org/a.csv", { headers: { Authorization: `Bearer ${token}` } });
 * for await (const line of open(table)) console.log(line);
 * ```
 *
 * In a string, everything after the bucket or container is the key as it is, so `%`, `#`, `?` and spaces belong to it. The key in a
 * `URL` is percent-encoded.
 *
 * Credentials and endpoints of object stores come from the environment of the process: `AWS_ACCESS_KEY_ID`,
 * `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_SKIP_SIGNATURE`, or from the
 * machine's metadata service. Proxies come from `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
 *
 * @throws `invalid_option`; `unsupported` if the native part of this package is not installed.
 */
export function remote(url: string | URL, options: RemoteOptions = {}): Remote {
  checkOptions("remote", options, REMOTE_RULES);
  const headers = pairsOf(options.headers);
  const text = urlOf("remote", url);
  if (text !== undefined) return described("remote", text, headers, nativeOptions(options, REMOTE_SETTINGS));
  throw misuse({
    stream: "remote",
    found: "something else",
    expected: "https://…, http://…, s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/KEY",
  });
}

/** Returns the path of a file, or the object that a caller means.
 *
 * @internal
 */
export function placeOf(call: string, place: unknown): string | Remote {
  if (isRemote(place)) return place;
  const url = urlOf(call, place);
  return url === undefined ? pathOf(call, place, "a URL of file, https, http or s3") : described(call, url, [], {});
}

/** @internal */
export function nativeRemote(remote: Remote): NativeRemote {
  return remote[DESCRIPTION] as NativeRemote;
}

function described(call: string, url: string, headers: [string, string][], options: NativeOptions): Remote {
  const { NativeRemote } = neededBinding(call);
  const description = new NativeRemote(url, headers, options);
  const name = description.name();
  const failure = description.failure();
  if (failure !== null) throw refusal(failure, name);
  return { name, [DESCRIPTION]: description };
}

function pairsOf(headers: unknown): [string, string][] {
  if (headers === undefined) return [];
  if (typeof headers === "object" && headers !== null) {
    const pairs: unknown[] = Symbol.iterator in headers ? [...(headers as Iterable<unknown>)] : Object.entries(headers);
    if (pairs.every(isPair)) return pairs;
  }
  const expected = "an object of strings, or pairs of a name and a value";
  throw misuse({ stream: "remote", found: "headers: something else", expected }, INVALID_OPTION);
}

function isPair(pair: unknown): pair is [string, string] {
  return Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === "string");
}
