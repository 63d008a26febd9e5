/** A file, a descriptor, an object or a command's standard input, which the native part writes on a separate thread, compressed if
 * that was requested.
 *
 * Chunks are copied once into the thread's memory. The process is kept alive only while a call waits for the thread.
 */

import { isMainThread } from "node:worker_threads";
import type { CommandEnd } from "../error.js";
import { type NativeWriter, nativeBinding } from "../native.js";
import { commandEnd, nativeError, refusal, Waker } from "../native-thread.js";
import type { ByteSink } from "./sink.js";

/** The time in milliseconds without progress after which bytes are given up when the process exits. */
const PATIENCE = 2000;

/** The time in milliseconds that removing incomplete files may take when the process exits. */
const LEAVING = 1000;

/** The properties of a sink. */
export interface NativeSinkOptions {
  readonly name: string;
  /** Whether there is no output unless the sink is finished. */
  readonly isNothingAtExit?: boolean | undefined;
  readonly isTerminal?: boolean | undefined;
  /** Whether waiting for it does not keep the process alive. */
  readonly isBackground?: boolean | undefined;
}

let leavesFiles = false;

export class NativeSink implements ByteSink {
  readonly name: string;
  readonly isNothingAtExit: boolean;
  readonly isTerminal: boolean;
  readonly endsWithTrailer: boolean;
  readonly #waker: Waker;
  readonly #writer: NativeWriter;

  /** @throws What the options or the name make impossible, before anything is opened. */
  constructor(start: (wake: () => void) => NativeWriter, options: NativeSinkOptions) {
    this.name = options.name;
    this.isNothingAtExit = options.isNothingAtExit === true;
    this.isTerminal = options.isTerminal === true;
    this.#waker = new Waker(options.isBackground !== true);
    this.#writer = start(this.#waker.wake);
    this.endsWithTrailer = this.#writer.encodes();
    const failure = this.#writer.isRefused() ? this.#writer.failure() : null;
    // The first call that waits reports any other failure.
    if (failure?.kind === "invalid_option" || failure?.kind === "unsupported") throw refusal(failure, this.name);
    if (this.isNothingAtExit && isMainThread && !leavesFiles) {
      leavesFiles = true;
      process.on("exit", () => nativeBinding()?.leaveFiles(LEAVING));
    }
  }

  get taken(): number {
    return this.#writer.written();
  }

  get losesFile(): boolean {
    return this.isNothingAtExit;
  }

  get vanishes(): boolean {
    return this.#writer.vanishes();
  }

  async write(chunk: Uint8Array): Promise<void> {
    while (!this.#writer.write(chunk)) await this.#waker.change();
    // Otherwise a fast source and a fast sink would delay all timers.
    await new Promise((resolve) => setImmediate(resolve));
    this.#complain();
  }

  async flush(): Promise<void> {
    this.#writer.flush();
    while (!this.#writer.isIdle()) await this.#waker.change();
    this.#complain();
  }

  async finish(): Promise<void> {
    this.#writer.close();
    await this.#gone();
    this.#complain();
  }

  async abandon(_error: unknown, now = false): Promise<void> {
    this.#writer.stop(now);
    await this.#gone();
  }

  writeSync(chunk: Uint8Array): boolean {
    return this.#writer.settle(chunk, PATIENCE);
  }

  commandEnds(): readonly CommandEnd[] {
    return this.#writer.ends().map(commandEnd);
  }

  async #gone(): Promise<void> {
    while (!this.#writer.isGone()) await this.#waker.change();
  }

  #complain(): void {
    const failure = this.#writer.failure();
    if (failure !== null) throw nativeError(failure, this.name);
  }
}
