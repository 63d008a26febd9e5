/** Runs consecutive stages over blocks.
 *
 * This is not recursive: a loop takes a block from stage to stage, so the call stack is no deeper for 10,000 stages
 * than for one. If a stage makes two blocks out of one, the second waits on a separate stack. The chain awaits once per
 * block, and when a stage requires it.
 *
 * Blocks leave in order, and all items before a failing one leave before the error.
 */

import type { MillstreamError } from "../error.js";
import { type Block, type BlockSource, recordOf } from "./block.js";
import { isPromise } from "./loop.js";
import type { Place, Step } from "./place.js";
import { type Run, stageFailed } from "./run.js";

/** A step, and the stage of the pipeline to which it belongs. */
export interface Link {
  readonly step: Step;
  readonly stage: number;
  readonly isSink?: boolean;
}

export function chainOf(source: BlockSource, links: readonly Link[], run: Run): BlockSource {
  const { stats, summary } = run;
  /** The postponed blocks, each with the step that continues with it; the last one is the next. */
  let pile: { readonly block: Block; readonly index: number }[] = [];
  let failure: MillstreamError | undefined;
  let isEnough = links.some(({ step }) => step.wantsNothing);
  let hasEnded = false;

  const drop = () => {
    for (const { block } of pile) block.rest?.return?.();
    pile = [];
  };
  const places = links.map(
    ({ stage, isSink }, index): Place => ({
      run,
      fail(block, at, cause, item) {
        const error = stageFailed(stage, recordOf(block, at), block.of, cause, { isSink });
        if (run.goesOnWithout(item, error)) return true;
        failure = error;
        drop();
        return false;
      },
      postpone: (block) => void pile.push({ block, index }),
      // Postponed blocks come after the current one, so there are no others.
      enough() {
        isEnough = true;
        drop();
      },
    }),
  );
  /** For a stage with two steps, the input of the first and the output of the last are counted. */
  const count = (index: number, before: number, after: number, began: number) => {
    const { stage } = links[index];
    const statistics = run.stages[stage];
    if (links[index - 1]?.stage !== stage) statistics.itemsIn += before;
    if (links[index + 1]?.stage !== stage) statistics.items += after;
    statistics.time += performance.now() - began;
  };
  const nextOfSource = async (): Promise<Block | null> => {
    if (hasEnded) return null;
    run.checkSignal();
    hasEnded = failure !== undefined || isEnough;
    if (failure !== undefined) throw failure;
    if (isEnough) {
      summary.endedEarly = true;
      await source.close();
      return null;
    }
    const block = await run.until(source.next());
    if (block === null) hasEnded = true;
    return block;
  };

  return {
    async next() {
      for (;;) {
        const waiting = pile.pop();
        let block = waiting?.block ?? (await nextOfSource());
        if (block === null) return null;
        for (let index = waiting?.index ?? 0; index < links.length && block.items.length > 0; index++) {
          const began = stats ? performance.now() : 0;
          const { length } = block.items;
          const result: ReturnType<Step["run"]> = links[index].step.run(block, places[index]);
          block = isPromise(result) ? await run.until(result) : result;
          if (stats) count(index, length, block.items.length, began);
        }
        await run.isolate();
        if (block.items.length > 0) return block;
      }
    },
    async close() {
      hasEnded = true;
      drop();
      await source.close();
    },
  };
}
