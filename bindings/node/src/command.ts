/** Starts commands, reads their standard error, waits for them and stops them.
 *
 * Commands leave no zombies or orphans, their standard error never blocks them, and their status is always collected. A
 * command keeps this process alive only while a call waits for it: a loop that ended early does not delay the exit.
 */

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { type CommandEnd, MillstreamError, misuse, showArgv } from "./error.js";
import { boolean, type Rules, show } from "./options.js";
import { STDERR, type Stderr } from "./settings.js";

/** The number of bytes of a command's standard error that are kept for its error. */
const STDERR_TAIL = 4096;

/** The time before SIGTERM, and again before SIGKILL, when a command is stopped. */
const PATIENCE = 1000;

/** Options of every command. */
export interface CommandOptions {
  /** The working directory. */
  currentDir?: string | URL;
  /** The environment; by default, the environment of this process. */
  env?: { readonly [name: string]: string | undefined };
  /** The destination of standard error: `"forward"` by default. */
  stderr?: Stderr;
  /** Whether a non-zero status, or a signal that kills the command, is accepted: false by default. */
  allowFailure?: boolean;
}

/** @internal */
export const COMMAND_RULES: Rules<CommandOptions> = {
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
  allowFailure: boolean,
};

/**
 * A started command.
 *
 * @internal
 */
export class Running {
  readonly name: string;
  readonly child: ChildProcess;
  readonly #argv: readonly string[];
  readonly #allowFailure: boolean;
  #tail = Buffer.alloc(0);
  #end: CommandEnd | undefined;
  #stopping = false;
  readonly #exited: Promise<void>;
  readonly #started: Promise<void>;
  #stderrEnded: Promise<void> = Promise.resolve();

  constructor(argv: readonly string[], stdin: StdioOptions, stdout: StdioOptions, options: CommandOptions) {
    const { currentDir: cwd, env, stderr = "forward", allowFailure = false } = options;
    this.name = showArgv(argv);
    this.#argv = argv;
    this.#allowFailure = allowFailure;
    const third = stderr === "inherit" ? "inherit" : stderr === "null" ? "ignore" : "pipe";
    const stdio = [stdin, stdout, third] as StdioOptions;
    try {
      this.child = spawn(argv[0], argv.slice(1), { cwd, env: env as NodeJS.ProcessEnv, stdio, windowsHide: true });
    } catch (error) {
      throw this.#notStarted(error);
    }
    const { child } = this;
    this.#started = new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => reject(this.#notStarted(error)));
    });
    this.#started.catch(() => {});
    this.#exited = new Promise((resolve) => {
      child.once("exit", (status, signal) => {
        this.#end = { argv, status, signal, stderrTail: this.#tail };
        resolve();
      });
      child.once("error", () => resolve());
    });
    if (child.stderr !== null) this.#watch(child.stderr, stderr === "forward");
    child.unref();
  }

  /** Resolves when the command runs; rejects with `command_not_started`. */
  started(): Promise<void> {
    return this.whileAwake(this.#started);
  }

  /** How the command ended, if it has ended. */
  get end(): CommandEnd | undefined {
    return this.#end && { ...this.#end, stderrTail: this.#tail };
  }

  /** Waits for the command's end and for its last output. Rejects if the command failed. */
  async wait(): Promise<void> {
    await this.started();
    await this.whileAwake(this.#exited);
    this.verdict(await this.#lastWords());
  }

  /** Stops the command: calls `hangUp`, which closes the pipe, then sends SIGTERM after one second and SIGKILL after
   * another second. The status of the command is ignored.
   */
  async stop(hangUp: () => void): Promise<void> {
    // Messages after the pipe is closed are ignored.
    this.#stopping = true;
    hangUp();
    try {
      await this.#started;
    } catch {
      return;
    }
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      if (await this.whileAwake(this.#exitsWithin(PATIENCE))) break;
      this.child.kill(signal);
    }
    // A process whose status was collected can be neither stopped nor waited for.
    await this.whileAwake(this.#exitsWithin(PATIENCE));
    this.child.stderr?.destroy();
  }

  /** Throws if the command has failed. */
  verdict(end: CommandEnd | undefined): void {
    if (end === undefined || this.#allowFailure || end.status === 0) return;
    const kind = end.status === null && end.signal === null ? "command_status_unknown" : "command_failed";
    throw new MillstreamError(kind, { stream: this.name, command: end });
  }

  /** Keeps this process alive until the promise has settled. */
  async whileAwake<T>(promise: Promise<T>): Promise<T> {
    this.#awake++;
    if (this.#awake === 1) this.child.ref();
    try {
      return await promise;
    } finally {
      this.#awake--;
      if (this.#awake === 0) this.child.unref();
    }
  }

  #awake = 0;

  #exitsWithin(milliseconds: number): Promise<boolean> {
    if (this.#end !== undefined) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), milliseconds);
      this.#exited.then(() => {
        clearTimeout(timer);
        resolve(true);
      });
    });
  }

  /**
   * Returns how the command ended, with its complete standard error. A grandchild that keeps standard error open
   * delays this only briefly.
   */
  async #lastWords(): Promise<CommandEnd | undefined> {
    if (this.#end?.status !== 0) {
      let timer: NodeJS.Timeout | undefined;
      const enough = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, PATIENCE);
      });
      await Promise.race([this.#stderrEnded, enough]);
      clearTimeout(timer);
    }
    return this.end;
  }

  #watch(pipe: Readable, forward: boolean): void {
    pipe.on("data", (chunk: Buffer) => {
      this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-STDERR_TAIL);
      if (forward && !this.#stopping) process.stderr.write(chunk);
    });
    pipe.on("error", () => {});
    this.#stderrEnded = new Promise((resolve) => {
      pipe.once("close", resolve);
    });
    (pipe as { unref?: () => void }).unref?.();
  }

  #notStarted(cause: unknown): MillstreamError {
    return new MillstreamError("command_not_started", { stream: showArgv(this.#argv), cause });
  }
}

/** Checks the words of a command.
 *
 * @internal
 */
export function argvOf(call: string, file: string, args: readonly string[]): readonly string[] {
  const refuse = (found: string) => {
    const expected = `a program's name and an array of its arguments, strings without a NUL: ${call}("name", ["argument"])`;
    return misuse({ stream: call, found, expected }, "invalid_option");
  };
  if (typeof file !== "string" || file === "") throw refuse(`the program ${show(file)}`);
  if (!Array.isArray(args)) throw refuse(`the arguments ${show(args)}`);
  const argv = [file, ...args];
  const wrong = argv.findIndex((word) => typeof word !== "string" || word.includes("\0"));
  if (wrong >= 0) throw refuse(`the word ${show(argv[wrong])}`);
  return argv;
}
