/** What readers and writers of the native part share: waiting for its thread, and its errors and commands. */

import { constants } from "node:os";
import { getSystemErrorName } from "node:util";
import { type CommandEnd, MillstreamError, misuse } from "./error.js";
import { INVALID_OPTION } from "./errors.js";
import type { NativeEnd, NativeFailure } from "./native.js";

const nothing = () => {};

/** Waits for changes that a thread reports. */
export class Waker {
  /** What a wake-up calls: `nothing` if no call waits, so that the thread does not keep the waiting object in memory. */
  readonly #target = { call: nothing };
  #woken: Promise<void> | undefined;
  /** The function that the thread calls. */
  readonly wake = waking(this.#target);

  /** Whether waiting keeps the process alive. */
  readonly #keepsAlive: boolean;

  constructor(keepsAlive = true) {
    this.#keepsAlive = keepsAlive;
  }

  /** Resolves when the state has changed since a call without a result. */
  change(): Promise<void> {
    this.#woken ??= new Promise((resolve) => {
      const awake = setInterval(nothing, 0x7fffffff);
      if (!this.#keepsAlive) awake.unref();
      this.#target.call = () => {
        this.#target.call = nothing;
        // Node calls up to 1,000 functions of threads in a row. Without this, a fast thread would delay all timers.
        setImmediate(() => {
          clearInterval(awake);
          this.#woken = undefined;
          resolve();
        });
      };
    });
    return this.#woken;
  }
}

function waking(target: { call(): void }): () => void {
  return () => target.call();
}

/** Converts an error of the native part. */
export function nativeError(failure: NativeFailure, stream: string): MillstreamError {
  const { kind, advice, command, errno, system, ...details } = failure;
  const end = command && commandEnd(command);
  return new MillstreamError(failure, { ...details, stream, command: end, cause: systemError(failure) });
}

/** Converts an error that the native part reports before anything is opened. */
export function refusal(failure: NativeFailure, stream: string): MillstreamError {
  const { kind, found, expected } = failure;
  return kind === "invalid_option" ? misuse({ stream, found, expected }, INVALID_OPTION) : nativeError(failure, stream);
}

export function commandEnd(end: NativeEnd): CommandEnd {
  const { argv, status = null, signal, stderrTail } = end;
  return { argv, status, signal: signal === undefined ? null : signalName(signal), stderrTail };
}

function signalName(signal: number): string {
  const names = Object.entries(constants.signals);
  return names.find(([, number]) => number === signal)?.[0] ?? `SIG${signal}`;
}

/** Returns the system's error in Node's form. */
function systemError({ errno, system }: NativeFailure): Error | undefined {
  if (system === undefined) return undefined;
  if (errno === undefined) return new Error(system);
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${code}: ${system}`), { errno: -errno, code });
}
