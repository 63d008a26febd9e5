/**
 * What can go wrong: one class, whose kinds and codes are those of every other language.
 *
 * Nobody needs to parse messages: `code`, `kind`, `stream`, `offset`, `record`, `found` and `expected` are there. What
 * caused it is `cause`, and the system's number `errno`. The table itself is `errors.ts`, which is generated.
 */

import { ERROR_ADVICE, ERROR_CODES, type ErrorKind } from "./errors.js";

/** How a command ended. */
export interface CommandEnd {
  /** The program and its arguments. */
  readonly argv: readonly string[];
  /** What it exited with; `null` if a signal ended it. */
  readonly status: number | null;
  /** The signal that ended it, such as `"SIGKILL"`. */
  readonly signal: string | null;
  /** The last 4 KiB of its standard error, where that was ours to see. */
  readonly stderrTail: Uint8Array;
}

/** Where an error is, and what is known of it. */
export interface ErrorDetails {
  stream?: string;
  offset?: number;
  record?: number;
  found?: string;
  expected?: string;
  path?: string;
  written?: number;
  command?: CommandEnd;
  /** The stage's place in its pipeline; the first is 0. */
  stage?: number;
  cause?: unknown;
}

const DETAILS = ["stream", "offset", "record", "found", "expected", "path", "written", "command", "stage"] as const;

/** Shared by the ESM and the CommonJS build of this package, so that an error of either is an error for both. */
const BRAND = Symbol.for("millstream.error");

/**
 * Every error of this package.
 *
 * `code` is fixed for each `kind`: the same number in C, C++, Python, Julia and Rust.
 */
export class MillstreamError extends Error {
  /** The kind, in snake case. */
  readonly kind: ErrorKind;
  /** The fixed number of the kind. */
  readonly code: number;
  /** The source or sink: a path, a command line. */
  declare readonly stream?: string;
  /** Where in the stream, in bytes from its start (after decoding). */
  declare readonly offset?: number;
  /** Which record; the first is 0. */
  declare readonly record?: number;
  /** What was found. */
  declare readonly found?: string;
  /** What was expected. */
  declare readonly expected?: string;
  /** Which value in a document: its keys from the outermost on, with dots between them. */
  declare readonly path?: string;
  /** Of a writer's error: how many bytes the system has taken for certain. */
  declare readonly written?: number;
  /** Which command ended, and how. */
  declare readonly command?: CommandEnd;
  /** Which stage of a pipeline failed; the first is 0. */
  declare readonly stage?: number;
  /** The system's error number, if the system reported this error. */
  declare readonly errno?: number;
  /** What to do about it. */
  readonly advice: string;

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true;
  }

  constructor(kind: ErrorKind, details: ErrorDetails = {}) {
    super(message(kind, details), details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.code = ERROR_CODES[kind];
    for (const key of DETAILS) if (details[key] !== undefined) Object.assign(this, { [key]: details[key] });
    const { errno } = (details.cause ?? {}) as { errno?: unknown };
    if (typeof errno === "number") this.errno = errno;
    this.advice = ERROR_ADVICE[kind];
  }

  /** The same error, where it is known better: what it already says stays. */
  at(details: ErrorDetails): MillstreamError {
    const merged: Record<string, unknown> = { ...details };
    for (const key of [...DETAILS, "cause"] as const) if (this[key] !== undefined) merged[key] = this[key];
    const error = new (this.constructor as typeof MillstreamError)(this.kind, merged);
    if (this.stack !== undefined) error.stack = this.stack.replace(this.message, () => error.message);
    return error;
  }
}

// Not in the class: it would be known by another name then.
Object.defineProperty(MillstreamError.prototype, "name", { value: "MillstreamError", configurable: true });
Object.defineProperty(MillstreamError.prototype, BRAND, { value: true });

/** The error of a system call or stream, as ours: one that is ours already stays what it is. */
export function fromSystem(error: unknown, kind: ErrorKind, details: ErrorDetails = {}): MillstreamError {
  if (error instanceof MillstreamError) return error.at(details);
  const { code } = (error ?? {}) as { code?: unknown };
  return new MillstreamError(kind === "io" && code === "EPIPE" ? "broken_pipe" : kind, { ...details, cause: error });
}

/** The error of an `AbortSignal` that has been triggered. */
export function cancelled(signal: AbortSignal, details: ErrorDetails = {}): MillstreamError {
  return new MillstreamError("cancelled", { ...details, cause: signal.reason });
}

/** A command line for messages: words with blanks or control characters are quoted. */
export function showArgv(argv: readonly string[]): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what has to be quoted
  return argv.map((word) => (/^[^\s\x00-\x1f\x7f'"\\$`]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
}

/** What was found, what was expected, where, and what to do. */
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
  if (written !== undefined) text += `, ${written} bytes are safely written`;
  const last = command === undefined ? "" : lastLine(command.stderrTail);
  if (last !== "") text += `; it said last: ${last}`;
  return `${text}; ${ERROR_ADVICE[kind]}`;
}

function showEnd(end: CommandEnd): string {
  if (end.signal !== null) return `was ended by signal ${end.signal}`;
  return end.status === null ? "ended with an unknown status" : `exited with status ${end.status}`;
}

/** The last line that says something, without what a terminal would obey. */
function lastLine(tail: Uint8Array): string {
  const lines = new TextDecoder().decode(tail).split("\n");
  const last = lines.reverse().find((line) => line.trim() !== "") ?? "";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what has to be escaped
  return last.replaceAll(/[\x00-\x1f\x7f-\x9f]/g, (c) => `\\u{${c.charCodeAt(0).toString(16)}}`);
}
