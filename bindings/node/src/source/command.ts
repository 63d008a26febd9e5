/** A command's standard output. Its end is the command's success. */

import type { Readable } from "node:stream";
import type { Running } from "../command.js";
import type { CommandEnd } from "../error.js";
import type { Source } from "./source.js";

export class CommandSource implements Source {
  readonly name: string;
  readonly #running: Running;
  readonly #stdout: Readable & { ref?(): void; unref?(): void };

  constructor(running: Running) {
    this.name = running.name;
    this.#running = running;
    this.#stdout = running.child.stdout!;
    this.#stdout.on("error", () => {});
    this.#stdout.unref?.();
  }

  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const chunk: Uint8Array | null = this.#stdout.read();
      if (chunk !== null) return chunk;
      const stdout = this.#stdout;
      if (stdout.readableEnded || stdout.destroyed) {
        if (stdout.errored) throw stdout.errored;
        // Where there is no such program, there is an end without a beginning.
        await this.#running.started();
        return null;
      }
      await this.#running.whileAwake(this.#more());
    }
  }

  finish(): Promise<void> {
    return this.#running.wait();
  }

  close(): Promise<void> {
    return this.#running.stop(() => this.#stdout.destroy());
  }

  commandEnds(): readonly CommandEnd[] {
    const { end } = this.#running;
    return end === undefined ? [] : [end];
  }

  #more(): Promise<void> {
    const stdout = this.#stdout;
    stdout.ref?.();
    return new Promise((resolve) => {
      const done = () => {
        stdout.off("readable", done).off("end", done).off("close", done);
        stdout.unref?.();
        resolve();
      };
      stdout.on("readable", done).on("end", done).on("close", done);
    });
  }
}
