/**
 * Commands: starting one, watching its standard error, waiting for it and stopping it.
 *
 * It promises: no zombie and no orphan of ours; its standard error never blocks it; its status is always collected. A
 * command keeps this process alive only while some call waits for it: a loop that was left does not delay the exit.
 */

import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { type CommandEnd, MillstreamError, misuse, showArgv } from "./error.js";
import { boolean, type Rules, show, word } from "./options.js";

/** How much of a command's standard error is kept for the error that names it. */
const STDERR_TAIL = 4096;

/** How long a command that is to stop has before SIGTERM, and again before SIGKILL. */
const PATIENCE = 1000;

/** Where a command's standard error goes. */
export type Stderr =
  /** Forwarded live to our own; its last 4 KiB also go into the error that reports a failure. */
  | "forward"
  /** Its last 4 KiB go into the error that reports a failure, and nowhere else. */
  | "capture"
  /** It is our own: a terminal stays a terminal, and errors cannot quote it. */
  | "inherit"
  /** Nowhere. */
  | "ignore";

/** Options of every command. */
export interface CommandOptions {
  /** Where it starts. */
  cwd?: string | URL;
  /** Its environment: that of this process by default. */
  env?: { readonly [name: string]: string | undefined };
  /** Where its standard error goes: `"forward"` by default. */
  stderr?: Stderr;
  /** Whether a non-zero status, or a signal that killed it, is no error: false by default. */
  allowFailure?: boolean;
}

/** @internal */
export const COMMAND_RULES: Rules<CommandOptions> = {
  cwd: { expected: "a path or a file URL", accepts: (value) => typeof value === "string" || value instanceof URL },
  env: {
    expected: "an object of strings",
    accepts: (value) =>
      typeof value === "object" &&
      value !== null &&
      Object.values(value).every((each) => each === undefined || typeof each === "string"),
  },
  stderr: word("forward", "capture", "inherit", "ignore"),
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
    const { cwd, env, stderr = "forward", allowFailure = false } = options;
    this.name = showArgv(argv);
    this.#argv = argv;
    this.#allowFailure = allowFailure;
    const third = stderr === "inherit" || stderr === "ignore" ? stderr : "pipe";
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

  /** Resolves when it runs; rejects with `command_not_started`. */
  started(): Promise<void> {
    return this.whileAwake(this.#started);
  }

  /** How it ended, if it has. */
  get end(): CommandEnd | undefined {
    return this.#end && { ...this.#end, stderrTail: this.#tail };
  }

  /** Waits until it has ended, and for its last output. Rejects if it failed. */
  async wait(): Promise<void> {
    await this.started();
    await this.whileAwake(this.#exited);
    this.verdict(await this.#lastWords());
  }

  /**
   * Stops it: `hangUp` closes our side; then SIGTERM after a second, SIGKILL after another. However it ends, that is
   * not an error.
   */
  async stop(hangUp: () => void): Promise<void> {
    // Its messages after we have closed our side are ignored.
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
    // A process that has been collected can be neither stopped nor waited for.
    await this.whileAwake(this.#exitsWithin(PATIENCE));
    this.child.stderr?.destroy();
  }

  /** Throws if it has failed. */
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

  /** How it ended, and its complete output on standard error. A grandchild that holds its standard error open is not waited for long. */
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

/**
 * The words of a command, checked.
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
