/** All errors are of one class, with the same kinds as in every other language.
 *
 * There is no need to parse messages: use `code`, `kind`, `stream`, `offset`, `record`, `found` and `expected`. The
 * underlying error is `cause`, and the system's error number `errno`. The table itself is `errors.ts`, which is
 * generated.
 */

import { ARGUMENT_INVALID, BROKEN_PIPE, CANCELLED, type ErrorCode, type ErrorKind, type Kind } from "./errors.js";

/** How a command ended. */
export interface CommandEnd {
  /** The program and its arguments. */
  readonly argv: readonly string[];
  /** The exit status; `null` if a signal killed the command. */
  readonly status: number | null;
  /** The signal that killed it, such as `"SIGKILL"`. */
  readonly signal: string | null;
  /** The last bytes of its standard error (4 KiB by default), if Millstream reads it. */
  readonly stderrTail: Uint8Array;
}

/** The position and the details of an error. */
export interface ErrorDetails {
  stream?: string | undefined;
  offset?: number | undefined;
  record?: number | undefined;
  line?: number | undefined;
  column?: number | undefined;
  found?: string | undefined;
  expected?: string | undefined;
  path?: string | undefined;
  written?: number | undefined;
  command?: CommandEnd | undefined;
  /** The index of the stage in its pipeline; the first is 0. */
  stage?: number | undefined;
  cause?: unknown | undefined;
  /** Whether the sink failed, for the message: a sink is no stage. */
  isSink?: boolean | undefined;
  /** What happened, for the message, instead of the kind and the stream: the command and how it ended. */
  what?: string | undefined;
  /** The last line of a command's standard error, for the message. */
  lastLine?: string | undefined;
}

/** Shared by the ESM and the CommonJS builds of this package, so that each recognises the errors of the other. */
const BRAND = Symbol.for("millstream.error");

/** The details of the errors of this build. */
const known = new WeakMap<object, ErrorDetails>();

/** The class of all errors of this package.
 *
 * `kind` is the same in every language, and `code` is the same for Node: `command_failed`, `MILLSTREAM_COMMAND_FAILED`.
 * The error of an aborted `signal` is an `AbortError` as in Node: its `name` says so, its `code` is `ABORT_ERR`, and its
 * `cause` is the signal's reason. The error for an invalid argument or option (`argument_invalid`, `invalid_option`) is
 * also a `TypeError`.
 */
export class MillstreamError extends Error {
  /** The kind, in snake case. */
  declare readonly kind: ErrorKind;
  /** The kind as a code of Node: `MILLSTREAM_` and the kind in upper case, or `ABORT_ERR`. */
  declare readonly code: ErrorCode;
  /** The source or sink: a path, a command line. */
  declare readonly stream?: string;
  /** The position in the stream, in bytes from its start (after decoding). */
  declare readonly offset?: number;
  /** The number of the record; the first is 0. */
  declare readonly record?: number;
  /** The line in a text; the first is 1. It is known if all records up to this one were lines or records of CSV. */
  declare readonly line?: number;
  /** The column in the line, in bytes; the first is 1. */
  declare readonly column?: number;
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
  declare readonly advice: string;

  static override [Symbol.hasInstance](value: any): boolean {
    return value?.[BRAND] === true;
  }

  constructor({ kind, advice }: Kind, all: ErrorDetails = {}) {
    const details: ErrorDetails = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    nameClasses();
    super(message({ kind, advice }, details), details);
    const { what, lastLine, cause, isSink, ...shown } = details;
    // `ERROR_CODES` lists the codes; bundles need not contain the list.
    const code = kind === "cancelled" ? "ABORT_ERR" : `MILLSTREAM_${kind.toUpperCase()}`;
    const errno = (cause as { errno?: unknown } | undefined)?.errno;
    Object.assign(this, { kind, code, advice }, shown, typeof errno === "number" ? { errno } : undefined);
    known.set(this, details);
  }

  /** Returns the error with more details; existing ones are kept. */
  at(details: ErrorDetails): MillstreamError {
    return changed(this, { ...details, ...known.get(this) });
  }
}

/** The error of an aborted signal, under the name that Node and the web use. */
class AbortError extends MillstreamError {}

/**
 * The error for a caller's mistake: a `TypeError`, as usual in JavaScript, with all properties of a
 * `MillstreamError`.
 */
class Misuse extends TypeError {}

/** Creates an error that has the prototype of this class. */
function made(of: typeof MillstreamError | typeof Misuse, kind: Kind, details: ErrorDetails): MillstreamError {
  return Reflect.construct(MillstreamError, [kind, details], of);
}

/** Returns the error with other details; those that are not given are kept. */
export function changed(old: MillstreamError, details: ErrorDetails): MillstreamError {
  const error = made(old.constructor as typeof MillstreamError, old, { ...known.get(old), ...details });
  if (old.stack !== undefined) error.stack = old.stack.replace(old.message, () => error.message);
  return error;
}

/** Creates the error for an invalid argument or option. It is a `TypeError` and an instance of `MillstreamError`. */
export function misuse(details: ErrorDetails, kind: Kind = ARGUMENT_INVALID): MillstreamError {
  return made(Misuse, kind, details);
}

let areNamed = false;

/** Names the classes before the first error is created, and not when this module is loaded, which would keep all of it in
 * every bundle. The names are not those of the classes, because minifiers may rename these.
 */
function nameClasses(): void {
  if (areNamed) return;
  areNamed = true;
  for (const [{ prototype }, name] of [
    [MillstreamError, "MillstreamError"],
    [AbortError, "AbortError"],
    [Misuse, "TypeError"],
  ] as const) {
    const values = { name, [BRAND]: true, at: MillstreamError.prototype.at };
    for (const key of Reflect.ownKeys(values)) {
      Object.defineProperty(prototype, key, { value: values[key as "name"], configurable: true });
    }
  }
}

/** Converts the error of a system call or stream to a `MillstreamError`, unless it is one already. */
export function fromSystem(error: any, kind: Kind, details: ErrorDetails = {}): MillstreamError {
  if (error instanceof MillstreamError) return error.at(details);
  const all = { ...details, cause: error };
  // A stream that the program has aborted by its own signal.
  if (error?.name === "AbortError") return new AbortError(CANCELLED, all);
  return new MillstreamError(kind.kind === "io" && error?.code === "EPIPE" ? BROKEN_PIPE : kind, all);
}

/** Creates the error for an `AbortSignal` that has been triggered. */
export function cancelled(signal: AbortSignal, details: ErrorDetails = {}): MillstreamError {
  return new AbortError(CANCELLED, { ...details, cause: signal.reason });
}

/** Formats what was found, what was expected, where, and what to do. */
function message({ kind, advice }: Kind, details: ErrorDetails): string {
  const { stream, found, expected, cause, what, line } = details;
  let text = what ?? `${stream ? `${stream}: ` : ""}${kind.replaceAll("_", " ")}`;
  const add = (before: string, value: unknown, after = "") => {
    if (value !== undefined) text += `${before}${value}${after}`;
  };
  add(": found ", found);
  add(`${found === undefined ? ":" : ","} expected `, expected);
  add(": ", cause instanceof Error ? cause.message : cause === undefined ? cause : String(cause));
  add(", in ", details.path);
  if (details.isSink) text += ", in the sink";
  else add(", in stage ", details.stage, " (the first is 0)");
  add(", at line ", line);
  if (line === undefined) {
    add(", at column ", details.column);
    if (details.column === undefined) add(", at byte ", details.offset);
    add(", record ", details.record, " (the first is 0)");
  } else {
    add(", column ", details.column);
  }
  add(", ", details.written, " bytes had been written");
  add("; last line of standard error: ", details.lastLine);
  return `${text}; ${advice}`;
}
