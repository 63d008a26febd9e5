/**
 * The stages that work in place and one block at a time.
 *
 * Each has a fast path, which is a loop over the whole block, and a slow path for blocks in which a function threw or
 * returned a promise.
 */

import { misuse } from "../error.js";
import type { RunningSink } from "../sink/sink.js";
import { type Block, descend, Indexes, part } from "./block.js";
import {
  COLLECT,
  FILTER,
  isAsync,
  isPromise,
  type LoopKind,
  newRun,
  type Run,
  StageLoop,
  type Stamping,
} from "./loop.js";
import type { Place, Step } from "./place.js";
import { atRefused } from "./run.js";

/** The number of promises of a stage that are awaited at once. */
const WINDOW = 1024;

/** The number of output items per block for a stage that makes several items from one. */
const SPREAD = 4096;

/** The results of a function for some items of a block. */
interface Answers {
  readonly values: any[];
  /** The reasons of failed calls, by index in `values`, if there are any. */
  readonly failures: Map<number, unknown> | undefined;
}

/**
 * Calls the function for items `start .. end` without waiting, then waits once. `first` is the result for the first
 * item, if it exists.
 */
async function ask(
  collect: StageLoop,
  place: Place,
  items: any[],
  start: number,
  end: number,
  first: PromiseLike<any> | undefined,
): Promise<Answers> {
  const run = newRun();
  const values = items.slice(start, end);
  let failures: Map<number, unknown> | undefined;
  let at = 0;
  if (first !== undefined) values[at++] = first;
  for (;;) {
    at = collect.run(run, values, at, values.length);
    if (at === values.length) break;
    failures ??= new Map();
    failures.set(at, run.value);
    values[at++] = undefined;
  }
  const atOnce = await valuesAtOnce(values);
  if (atOnce !== undefined) return { values: atOnce, failures };
  try {
    return { values: await place.run.until(Promise.all(values)), failures };
  } catch (error) {
    if (place.run.signal?.aborted) throw error;
  }
  const settled = await place.run.until(Promise.allSettled(values));
  settled.forEach((result, index) => {
    if (result.status === "fulfilled") {
      values[index] = result.value;
    } else {
      failures ??= new Map();
      failures.set(index, result.reason);
    }
  });
  return { values, failures };
}

/** Returns the results of promises if all are settled, otherwise `undefined`. This is the case for an `async` function
 * that does not wait, and takes half the time of `Promise.all`. A failed attempt has no side effects.
 *
 * Handlers of settled promises run in the order in which they were added, all of them before the last handler here; a
 * promise that settles later runs its handler later. So if there are enough values by then, they are in order.
 */
function valuesAtOnce(promises: readonly unknown[]): Promise<any[] | undefined> {
  return new Promise((resolve) => {
    const values: any[] = [];
    let rejected = false;
    const fulfil = (value: unknown) => {
      values.push(value);
    };
    const reject = () => {
      rejected = true;
    };
    for (const promise of promises) {
      // Only the engine's own promises are known to behave in this way.
      if (!(promise instanceof Promise) || promise.constructor !== Promise) {
        resolve(undefined);
        return;
      }
      promise.then(fulfil, reject);
    }
    Promise.resolve().then(() => {
      resolve(!rejected && values.length === promises.length ? values : undefined);
    });
  });
}

/** `map` and `inspect`, which output as many items as they receive. */
export class MapStep implements Step {
  readonly #loop: StageLoop;
  readonly #collect: StageLoop;
  readonly #async: boolean;
  readonly #indexes = new Indexes();

  /** `loop` is `MAP`, or `EACH` if the items stay. */
  constructor(
    readonly kind: "map" | "inspect" | "flatMap",
    loop: LoopKind,
    f: (item: any) => any,
    stamping: Stamping,
  ) {
    this.#loop = new StageLoop(loop, f, stamping);
    this.#collect = new StageLoop(COLLECT, f, stamping);
    this.#async = isAsync(f);
  }

  run(block: Block, place: Place): Block | Promise<Block> {
    const { items } = block;
    if (this.#async) return this.#carefully(block, place, newRun(), 0);
    const run = newRun();
    const at = this.#loop.run(run, items, 0, items.length);
    return at === items.length ? block : this.#carefully(block, place, run, at);
  }

  /** Continues at item `at`, for which the loop has stopped. */
  async #carefully(block: Block, place: Place, run: Run, at: number): Promise<Block> {
    const { items } = block;
    const lost: number[] = [];
    let end = items.length;
    while (at < end) {
      if (run.thrown) {
        if (place.fail(block, at, run.value, items[at])) lost.push(at++);
        else end = at;
      } else {
        const until = Math.min(at + WINDOW, end);
        const { values, failures } = await ask(this.#collect, place, items, at, until, run.value);
        for (let index = at; index < until; index++) {
          if (failures === undefined || !failures.has(index - at)) {
            if (this.kind !== "inspect") items[index] = values[index - at];
          } else if (place.fail(block, index, failures.get(index - at), items[index])) {
            lost.push(index);
          } else {
            end = index;
            break;
          }
        }
        at = until;
      }
      run.thrown = false;
      run.value = undefined;
      if (at < end && !this.#async) at = this.#loop.run(run, items, at, end);
    }
    items.length = end;
    return lost.length === 0 ? block : this.#without(block, lost);
  }

  #without(block: Block, lost: number[]): Block {
    const { items } = block;
    const from = this.#indexes.atLeast(items.length);
    let kept = 0;
    let next = 0;
    for (let index = 0; index < items.length; index++) {
      if (lost[next] === index) {
        next++;
      } else {
        from[kept] = index;
        items[kept++] = items[index];
      }
    }
    items.length = kept;
    return descend(block, items, from);
  }
}

/** `filter`. */
export class FilterStep implements Step {
  readonly kind = "filter";
  readonly #loop: StageLoop;
  readonly #collect: StageLoop;
  readonly #async: boolean;
  readonly #indexes = new Indexes();

  constructor(f: (item: any) => any, stamping: Stamping) {
    this.#loop = new StageLoop(FILTER, f, stamping);
    this.#collect = new StageLoop(COLLECT, f, stamping);
    this.#async = isAsync(f);
  }

  run(block: Block, place: Place): Block | Promise<Block> {
    const { items } = block;
    const run = newRun(this.#indexes.atLeast(items.length));
    if (this.#async) return this.#carefully(block, place, run, 0);
    const at = this.#loop.run(run, items, 0, items.length);
    return at === items.length ? kept(block, run) : this.#carefully(block, place, run, at);
  }

  async #carefully(block: Block, place: Place, run: Run, at: number): Promise<Block> {
    const { items } = block;
    let end = items.length;
    while (at < end) {
      if (run.thrown) {
        if (place.fail(block, at, run.value, items[at])) at++;
        else end = at;
      } else {
        const until = Math.min(at + WINDOW, end);
        const { values, failures } = await ask(this.#collect, place, items, at, until, run.value);
        for (let index = at; index < until; index++) {
          if (failures === undefined || !failures.has(index - at)) {
            if (values[index - at]) {
              run.from[run.kept] = index;
              items[run.kept++] = items[index];
            }
          } else if (!place.fail(block, index, failures.get(index - at), items[index])) {
            end = index;
            break;
          }
        }
        at = until;
      }
      run.thrown = false;
      run.value = undefined;
      if (at < end && !this.#async) at = this.#loop.run(run, items, at, end);
    }
    return kept(block, run);
  }
}

function kept(block: Block, run: Run): Block {
  block.items.length = run.kept;
  return descend(block, block.items, run.from);
}

/** `scanState`, and the sinks `forEach` and `fold`: each promise is awaited before the next call. */
export class SequentialStep implements Step {
  readonly #loop: StageLoop;
  readonly #run = newRun();
  readonly #indexes = new Indexes();

  constructor(
    readonly kind: "scan" | "forEach" | "fold",
    loop: LoopKind,
    f: (...of: any[]) => any,
    stamping: Stamping,
    /** The initial state. */
    state: unknown,
  ) {
    this.#loop = new StageLoop(loop, f, stamping);
    this.#run.state = state;
  }

  /** The result. */
  get state(): unknown {
    return this.#run.state;
  }

  run(block: Block, place: Place): Block | Promise<Block> {
    const { items } = block;
    const at = this.#loop.run(this.#run, items, 0, items.length);
    return at === items.length ? block : this.#carefully(block, place, at);
  }

  async #carefully(block: Block, place: Place, at: number): Promise<Block> {
    const { items } = block;
    const run = this.#run;
    const from = this.#indexes.atLeast(items.length);
    let end = items.length;
    let kept = 0;
    let done = 0;
    const keepUntil = (index: number) => {
      for (; done < index; done++) {
        from[kept] = done;
        items[kept++] = items[done];
      }
    };
    while (at < end) {
      let failed = run.thrown;
      let value = run.value;
      if (!failed) {
        try {
          value = await place.run.until(Promise.resolve(run.value));
          if (this.kind === "scan") items[at] = value;
          if (this.kind === "fold") run.state = value;
        } catch (error) {
          if (place.run.signal?.aborted) throw error;
          failed = true;
          value = error;
        }
      }
      keepUntil(at);
      if (failed && !place.fail(block, at, value, items[at])) end = at;
      else if (failed) done++;
      run.thrown = false;
      run.value = undefined;
      if (at < end) at = this.#loop.run(run, items, at + 1, end);
    }
    keepUntil(end);
    items.length = kept;
    return descend(block, items, from);
  }
}

/** The second half of `flatMap`, which expands the results of the function. */
export class SpreadStep implements Step {
  readonly kind = "flatMap";
  readonly #indexes = new Indexes();

  run(block: Block, place: Place): Block {
    const { items } = block;
    const from = this.#indexes.atLeast(SPREAD);
    const out: any[] = [];
    let index = 0;
    let { rest } = block;
    for (; index < items.length; index++) {
      try {
        const iterator = rest ?? iteratorOf(items[index]);
        rest = undefined;
        for (;;) {
          if (out.length === SPREAD) {
            place.postpone({ ...part(block, index, items.length), rest: iterator });
            return descend(block, out, from);
          }
          const { done, value } = iterator.next();
          if (done) break;
          from[out.length] = index;
          out.push(value);
        }
      } catch (error) {
        if (!place.fail(block, index, error, items[index])) break;
      }
    }
    return descend(block, out, from);
  }
}

function iteratorOf(value: any): Iterator<any> {
  if (typeof value === "object" && value !== null && Symbol.iterator in value) return value[Symbol.iterator]();
  const found = value === null ? "null" : typeof value;
  throw misuse({ found, expected: "an array or another iterable object" });
}

/** `take`. */
export class TakeStep implements Step {
  readonly kind = "take";
  #left: number;

  constructor(count: number) {
    this.#left = count;
  }

  get wantsNothing(): boolean {
    return this.#left === 0;
  }

  run(block: Block, place: Place): Block {
    const { items } = block;
    if (items.length >= this.#left) {
      items.length = this.#left;
      place.enough();
    }
    this.#left -= items.length;
    return block;
  }
}

/** `skip`. */
export class SkipStep implements Step {
  readonly kind = "skip";
  #left: number;

  constructor(count: number) {
    this.#left = count;
  }

  run(block: Block): Block {
    if (this.#left === 0) return block;
    const skipped = Math.min(this.#left, block.items.length);
    this.#left -= skipped;
    return part(block, skipped, block.items.length);
  }
}

/** `batch`. */
export class BatchStep implements Step {
  readonly kind = "batch";

  constructor(readonly count: number) {}

  run(block: Block, place: Place): Block {
    const { length } = block.items;
    if (length <= this.count) return block;
    // The items are not copied for each part: the rest is a view of the same array.
    const start = block.start ?? 0;
    const end = start + this.count;
    if (end < length) place.postpone({ ...block, start: end });
    return part(block, start, end);
  }
}

/** `tee`. */
export class TeeStep implements Step {
  readonly kind = "tee";

  constructor(readonly sink: RunningSink) {}

  run(block: Block): Block | Promise<Block> {
    try {
      const writing = this.sink.write(block.items);
      if (!isPromise(writing)) return block;
      const located = (error: unknown) => Promise.reject(atRefused(error, block));
      return Promise.resolve(writing).then(() => block, located);
    } catch (error) {
      throw atRefused(error, block);
    }
  }
}
