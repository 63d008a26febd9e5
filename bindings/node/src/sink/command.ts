/** A command's standard input. The data counts as written when the command has succeeded. */

import type { Writable } from "node:stream";
import type { Running } from "../command.js";
import { type CommandEnd, MillstreamError } from "../error.js";
import type { ByteSink } from "./sink.js";

export class CommandSink implements ByteSink {
  readonly name: string;
  readonly #running: Running;
  readonly #stdin: Writable & { ref?(): void; unref?(): void };

  constructor(running: Running) {
    this.name = running.name;
    this.#running = running;
    this.#stdin = running.child.stdin!;
    this.#stdin.on("error", () => {});
    this.#stdin.unref?.();
  }

  async write(chunk: Uint8Array): Promise<void> {
    await this.#running.started();
    try {
      await this.#whileWaiting((done) => this.#stdin.write(chunk, done));
    } catch (error) {
      throw await this.#gone(error);
    }
  }

  async finish(): Promise<void> {
    await this.#running.started();
    try {
      await this.#whileWaiting((done) => this.#stdin.end(done));
    } catch (error) {
      throw await this.#gone(error);
    }
    await this.#running.wait();
  }

  async abandon(): Promise<void> {
    await this.#running.stop(() => this.#stdin.destroy()).catch(() => {});
  }

  commandEnds(): readonly CommandEnd[] {
    const { end } = this.#running;
    return end === undefined ? [] : [end];
  }

  /** Returns the error if the command does not read any more; if the command has failed, this is its failure. */
  async #gone(cause: unknown): Promise<MillstreamError> {
    await this.#running.wait();
    return new MillstreamError("broken_pipe", { stream: this.name, cause });
  }

  #whileWaiting(call: (done: (error?: Error | null) => void) => void): Promise<void> {
    this.#stdin.ref?.();
    return this.#running
      .whileAwake(
        new Promise<void>((resolve, reject) => {
          call((error) => (error ? reject(error) : resolve()));
        }),
      )
      .finally(() => this.#stdin.unref?.());
  }
}
