/** The options and words of commands, which the native part starts, waits for and stops.
 *
 * Commands leave no zombies or orphans, their standard error never blocks them, and their status is always collected. A
 * command keeps this process alive only while a call waits for it: a loop that ended early does not delay the exit.
 */

import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import { type NativeCommand, nativeOptions } from "./native.js";
import { FLAG, type Rules, show } from "./options.js";
import { COMMAND_SETTINGS, type CommandSettings, STDERR, type Stderr } from "./settings.js";

/** Options of every command. */
export interface CommandOptions extends CommandSettings {
  /** The working directory. */
  currentDir?: string | URL | undefined;
  /** The environment; by default, the environment of this process. */
  env?: { readonly [name: string]: string | undefined } | undefined;
  /** The destination of standard error: `"forward"` by default. */
  stderr?: Stderr | undefined;
  /** Whether every exit status and every signal is a success: false by default. */
  allowFailure?: boolean | undefined;
}

/** @internal */
export const COMMAND_RULES: Rules<Omit<CommandOptions, keyof CommandSettings>> = {
  currentDir: {
    expected: "a path or a file URL",
    accepts: (value) => typeof value === "string" || value instanceof URL,
  },
  env: {
    expected: "an object of strings",
    accepts: (value) =>
      typeof value === "object" &&
      value !== null &&
      Object.values(value).every((each) => each === undefined || typeof each === "string"),
  },
  stderr: STDERR,
  allowFailure: FLAG,
};

/** Formats a command line for messages as the core does: as it can be pasted into a shell.
 *
 * @internal
 */
export function showArgv(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

function quoted(word: string): string {
  if (/^[-\p{Alphabetic}\p{N}_./,:=+@%]+$/u.test(word)) return word;
  if (!/[\p{Cc}`\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u.test(word)) {
    return `'${word.replaceAll("'", String.raw`'\''`)}'`;
  }
  const escaped = word.replace(/[\p{Cc}`\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\\']/gu, (c) => {
    if (c === "\n") return String.raw`\n`;
    if (c === "\t") return String.raw`\t`;
    if (c === "\\" || c === "'") return `\\${c}`;
    return Array.from(new TextEncoder().encode(c), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  });
  return `$'${escaped}'`;
}

/** Checks the words of a command.
 *
 * @internal
 */
export function argvOf(call: string, file: string, args: readonly string[]): readonly string[] {
  const refuse = (found: string) => {
    const expected = `a program's name and an array of its arguments, strings without a NUL: ${call}("name", ["argument"])`;
    return misuse({ stream: call, found, expected }, INVALID_OPTION);
  };
  if (typeof file !== "string" || file === "") throw refuse(`the program ${show(file)}`);
  if (!Array.isArray(args)) throw refuse(`the arguments ${show(args)}`);
  const argv = [file, ...args];
  const wrong = argv.findIndex((word) => typeof word !== "string" || word.includes("\0"));
  if (wrong >= 0) throw refuse(`the word ${show(argv[wrong])}`);
  return argv;
}

/** Checks a shell line.
 *
 * @internal
 */
export function lineOf(call: string, line: string): string {
  if (typeof line === "string" && line !== "" && !line.includes("\0")) return line;
  throw misuse(
    { stream: call, found: `the line ${show(line)}`, expected: "a shell line, a string without a NUL" },
    INVALID_OPTION,
  );
}

/** Returns a command for the native part: its words, or a shell line.
 *
 * @internal
 */
export function nativeCommand(
  words: readonly string[] | string,
  options: CommandOptions,
  streams: Pick<NativeCommand, "stdin" | "stdinFd" | "stdinPath" | "stdinBytes" | "stdout" | "stdoutFd">,
): NativeCommand {
  const { currentDir, stderr = "forward", allowFailure = false } = options;
  // A worker's `process.env` is a separate copy.
  const all = options.env ?? (isMainThread ? undefined : process.env);
  const given = Object.entries(all ?? {}).filter(([, value]) => value !== undefined);
  const env = all && Object.fromEntries(given.map(([name, value]) => [name, `${value}`]));
  const directory = currentDir instanceof URL ? fileURLToPath(currentDir) : currentDir;
  const shell = typeof words === "string";
  const argv = shell ? [words] : words;
  const settings = nativeOptions(options, COMMAND_SETTINGS);
  return { argv, shell, currentDir: directory, env, ...streams, stderr, allowFailure, settings };
}
