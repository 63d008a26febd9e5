/** A command in the middle of a pipeline. */

import { argvOf, COMMAND_RULES, lineOf, showArgv } from "./command.js";
import { CommandInput } from "./input.js";
import { type CommandReaderOptions, started } from "./open.js";
import { type Tables, TEXT_OR_BYTES } from "./options.js";
import { blocksOf } from "./pipe/source.js";
import type { Stage } from "./pipe/stage.js";
import { type As, checkReaderOptions, type ItemOf, READER_RULES } from "./reader.js";
import { COMMAND_SETTINGS, READER_SETTINGS } from "./settings.js";
import type { Writer } from "./writer.js";

/** Options of `through` and `throughShell`. */
export interface ThroughOptions<A extends As = As> extends Omit<CommandReaderOptions<A>, "stdin" | "input"> {
  /** The bytes after each item that the command gets: a line feed by default. */
  delimiter?: string | Uint8Array | undefined;
}

const THROUGH_RULES: Tables<ThroughOptions> = [
  READER_SETTINGS,
  READER_RULES,
  COMMAND_RULES,
  COMMAND_SETTINGS,
  { delimiter: TEXT_OR_BYTES },
];

/** Passes the items, strings or bytes, to a command and continues with the records of its output.
 *
 * The command is started without a shell when the pipeline starts, and it must succeed: an error follows its last record.
 * An error of an earlier stage also follows what the command made of the items before it. Records are counted anew from
 * the output of the command.
 */
export function through<A extends As = "text">(
  file: string,
  args: readonly string[] = [],
  options: ThroughOptions<A> = {},
): Stage<string | Uint8Array, ItemOf<A>> {
  const argv = argvOf("through", file, args);
  return stage("through", showArgv(argv), argv, options);
}

/** Like `through`, for a shell line, `bash -o pipefail -c line`. Never put user input or file names into the line. */
export function throughShell<A extends As = "text">(
  line: string,
  options: ThroughOptions<A> = {},
): Stage<string | Uint8Array, ItemOf<A>> {
  return stage("throughShell", lineOf("throughShell", line), line, options);
}

function stage<A extends As>(
  call: string,
  name: string,
  command: readonly string[] | string,
  options: ThroughOptions<A>,
): Stage<string | Uint8Array, ItemOf<A>> {
  checkReaderOptions(call, options, THROUGH_RULES);
  const { delimiter, ...rest } = options;
  return {
    stage: {
      kind: call,
      source(upstream, stage, run) {
        const statistics = run.stats ? run.stages[stage] : undefined;
        const put = (writer: Writer, items: any[]) => {
          if (statistics !== undefined) statistics.itemsIn += items.length;
          return writer.writeRecords(items);
        };
        const input = new CommandInput(call, upstream, put, delimiter);
        const output = run.adopt(blocksOf(started(call, name, [command], rest, input)));
        return {
          async next() {
            try {
              const block = await output.next();
              if (statistics !== undefined && block !== null) statistics.items += block.items.length;
              return block;
            } catch (error) {
              throw input.failure?.error ?? error;
            }
          },
          close: () => output.close(),
        };
      },
    },
  };
}
