/** All errors are of one class, with the same kinds as in every other language.
 *
 * There is no need to parse messages: use `code`, `kind`, `stream`, `offset`, `record`, `found` and `expected`. The
 * underlying error is `cause`, and the system's error number `errno`. The table itself is `errors.ts`, which is
 * generated.
 */

import { ERROR_ADVICE, type ErrorCode, type ErrorKind } from "./errors.js";

/** How a command ended. */
export interface CommandEnd {
  /** The program and its arguments. */
  readonly argv: readonly string[];
  /** The exit status; `null` if a signal killed the command. */
  readonly status: number | null;
  /** The signal that killed it, such as `"SIGKILL"`. */
  readonly signal: string | null;
  /** The last 4 KiB of its standard error, if Millstream reads it. */
  readonly stderrTail: Uint8Array;
}

/** The position and the details of an error. */
export interface ErrorDetails {
  stream?: string | undefined;
  offset?: number | undefined;
  record?: number | undefined;
  found?: string | undefined;
  expected?: string | undefined;
  path?: string | undefined;
  written?: number | undefined;
  command?: CommandEnd | undefined;
  /** The index of the stage in its pipeline; the first is 0. */
  stage?: number | undefined;
  cause?: unknown | undefined;
}

const DETAILS = ["stream", "offset", "record", "found", "expected", "path", "written", "command", "stage"] as const;

/** Shared by the ESM and the CommonJS builds of this package, so that each recognises the errors of the other. */
const BRAND = Symbol.for("millstream.error");

/** The class of all errors of this package.
 *
 * `kind` is the same in every language, and `code` is the same for Node: `command_failed`, `MILLSTREAM_COMMAND_FAILED`.
 * The error of an aborted `signal` is an `AbortError` as in Node: its `name` says so, its `code` is `ABORT_ERR`, and its
 * `cause` is the signal's reason. The error for an invalid argument or option (`argument_invalid`, `invalid_option`) is
 * also a `TypeError`.
 */
export class MillstreamError extends Error {
  /** The kind, in snake case. */
  readonly kind: ErrorKind;
  /** The kind as a code of Node: `MILLSTREAM_` and the kind in upper case, or `ABORT_ERR`. */
  readonly code: ErrorCode;
  /** The source or sink: a path, a command line. */
  declare readonly stream?: string;
  /** The position in the stream, in bytes from its start (after decoding). */
  declare readonly offset?: number;
  /** The number of the record; the first is 0. */
  declare readonly record?: number;
  /** What was found. */
  declare readonly found?: string;
  /** What was expected. */
  declare readonly expected?: string;
  /** The path of a value in a document: its keys, the outermost first, separated by dots. */
  declare readonly path?: string;
  /** For a writer's error: the number of bytes that the system has accepted with certainty. */
  declare readonly written?: number;
  /** The command that failed, and how it ended. */
  declare readonly command?: CommandEnd;
  /** The index of the stage that failed; the first is 0. */
  declare readonly stage?: number;
  /** The system's error number, if the system reported this error. */
  declare readonly errno?: number;
  /** What to do about it. */
  readonly advice: string;

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
  }

  constructor(kind: ErrorKind, details: ErrorDetails = {}) {
    super(...messageAndCause(kind, details));
    this.kind = kind;
    this.code = codeOf(kind);
    this.advice = ERROR_ADVICE[kind];
    assignDetails(this, details);
  }

  /** Returns the error with more details; existing ones are kept. */
  at(details: ErrorDetails): MillstreamError {
    return remade(this, { ...details, ...detailsOf(this) });
  }

  /** Returns the error with the bytes of an incomplete record, if the source failed inside it. */
  withUnfinished(rest: Uint8Array): MillstreamError {
    const shown = JSON.stringify(new TextDecoder().decode(rest.subarray(0, SHOWN)));
    const more = rest.length > SHOWN ? "..." : "";
    const bytes = `${rest.length} ${rest.length === 1 ? "byte" : "bytes"} of an unfinished record, ${shown}${more}`;
    const details = detailsOf(this);
    return remade(this, { ...details, found: details.found === undefined ? bytes : `${details.found}, and ${bytes}` });
  }
}

/** Returns what `ERROR_CODES` lists, without the list, which bundles therefore need not contain. */
function codeOf(kind: ErrorKind): ErrorCode {
  return kind === "cancelled" ? "ABORT_ERR" : (`MILLSTREAM_${kind.toUpperCase()}` as ErrorCode);
}

/** The number of bytes of an unfinished record that a message shows. */
const SHOWN = 40;

function detailsOf(error: MillstreamError): ErrorDetails {
  const details: Record<string, unknown> = {};
  for (const key of [...DETAILS, "cause"] as const) if (error[key] !== undefined) details[key] = error[key];
  return details;
}

function remade(old: MillstreamError, details: ErrorDetails): MillstreamError {
  const error = new (old.constructor as typeof MillstreamError)(old.kind, details);
  if (old.stack !== undefined) error.stack = old.stack.replace(old.message, () => error.message);
  return error;
}

function messageAndCause(kind: ErrorKind, details: ErrorDetails): [string, ErrorOptions?] {
  const text = message(kind, details);
  return details.cause === undefined ? [text] : [text, { cause: details.cause }];
}

function assignDetails(error: object, details: ErrorDetails): void {
  for (const key of DETAILS) if (details[key] !== undefined) Object.assign(error, { [key]: details[key] });
  const { errno } = (details.cause ?? {}) as { errno?: unknown };
  if (typeof errno === "number") Object.assign(error, { errno });
}

/** The error of an aborted signal, under the name that Node and the web use. */
class AbortError extends MillstreamError {}

/**
 * The error for a caller's mistake: a `TypeError`, as usual in JavaScript, with all properties of a
 * `MillstreamError`.
 */
class Misuse extends TypeError {
  constructor(kind: ErrorKind, details: ErrorDetails = {}) {
    super(...messageAndCause(kind, details));
    Object.assign(this, { kind, code: codeOf(kind), advice: ERROR_ADVICE[kind] });
    assignDetails(this, details);
  }
}

/** Creates the error for an invalid argument or option. It is a `TypeError` and an instance of `MillstreamError`. */
export function misuse(
  details: ErrorDetails,
  kind: "argument_invalid" | "invalid_option" = "argument_invalid",
): MillstreamError {
  return new Misuse(kind, details) as unknown as MillstreamError;
}

// This is not in the class, because minifiers may rename the class.
Object.defineProperty(MillstreamError.prototype, "name", { value: "MillstreamError", configurable: true });
Object.defineProperty(AbortError.prototype, "name", { value: "AbortError", configurable: true });
Object.defineProperty(MillstreamError.prototype, BRAND, { value: true });
Object.defineProperty(Misuse.prototype, BRAND, { value: true });
for (const method of ["at", "withUnfinished"] as const) {
  Object.defineProperty(Misuse.prototype, method, { value: MillstreamError.prototype[method] });
}

/** Converts the error of a system call or stream to a `MillstreamError`, unless it is one already. */
export function fromSystem(error: unknown, kind: ErrorKind, details: ErrorDetails = {}): MillstreamError {
  if (error instanceof MillstreamError) return error.at(details);
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  // A stream that the program has aborted by its own signal.
  if (name === "AbortError") return new AbortError("cancelled", { ...details, cause: error });
  return new MillstreamError(kind === "io" && code === "EPIPE" ? "broken_pipe" : kind, { ...details, cause: error });
}

/** Creates the error for an `AbortSignal` that has been triggered. */
export function cancelled(signal: AbortSignal, details: ErrorDetails = {}): MillstreamError {
  return new AbortError("cancelled", { ...details, cause: signal.reason });
}

/** Formats a command line for messages; words with blanks or control characters are quoted. */
export function showArgv(argv: readonly string[]): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must be quoted
  return argv.map((word) => (/^[^\s\x00-\x1f\x7f'"\\$`]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
}

/** Formats what was found, what was expected, where, and what to do. */
function message(kind: ErrorKind, details: ErrorDetails): string {
  const { stream, offset, record, found, expected, path, written, command, stage, cause } = details;
  let text = stream && !command ? `${stream}: ` : "";
  text += command ? `the command \`${showArgv(command.argv)}\` ${showEnd(command)}` : kind.replaceAll("_", " ");
  if (found !== undefined) text += `: found ${found}`;
  if (expected !== undefined) text += `${found === undefined ? ":" : ","} expected ${expected}`;
  if (cause !== undefined) text += `: ${cause instanceof Error ? cause.message : String(cause)}`;
  if (path !== undefined) text += `, in ${path}`;
  if (stage !== undefined) text += `, in stage ${stage} (the first is 0)`;
  if (offset !== undefined) text += `, at byte ${offset}`;
  if (record !== undefined) text += `, record ${record} (the first is 0)`;
  if (written !== undefined) text += `, ${written} bytes had been written`;
  const last = command === undefined ? "" : lastLine(command.stderrTail);
  if (last !== "") text += `; last line of standard error: ${last}`;
  return `${text}; ${ERROR_ADVICE[kind]}`;
}

function showEnd(end: CommandEnd): string {
  if (end.signal !== null) return `was killed by signal ${end.signal}`;
  return end.status === null ? "ended with an unknown status" : `exited with status ${end.status}`;
}

/** Returns the last non-empty line, without control characters. */
function lastLine(tail: Uint8Array): string {
  const lines = new TextDecoder().decode(tail).split("\n");
  const last = lines.reverse().find((line) => line.trim() !== "") ?? "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they must be escaped
  return last.replaceAll(/[\x00-\x1f\x7f-\x9f]/g, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}
