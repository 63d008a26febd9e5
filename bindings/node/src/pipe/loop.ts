/** The loops that call stages, with one call per item and no other cost.
 *
 * A function call costs one nanosecond if the engine knows the function, and may then be optimised away; it costs six
 * if many functions are called from one place. So a stage with many items gets its own loop, created with `new
 * Function`. All other stages share one loop of each kind, and all stages do if `new Function` is disabled or forbidden
 * (by a content security policy).
 *
 * A loop runs until the items end, or until one needs special treatment because the function threw or returned a
 * promise. Then the loop stores this in its `Run` and returns the item's index; the caller decides how to continue.
 */

/** Why a loop stopped, and its counters. */
export interface Run {
  /** The value that was thrown, or the promise that was returned. */
  value: any;
  /** Whether the value was thrown. */
  thrown: boolean;
  /** The number of items that a filter has kept. */
  kept: number;
  /** The original index of each item that was kept. */
  from: Uint32Array;
  /** The result of a fold so far, or a state. */
  state: any;
}

/** Creates the state of loops over one block. */
export function newRun(from: Uint32Array = NO_INDEXES): Run {
  return { value: undefined, thrown: false, kept: 0, from, state: undefined };
}

const NO_INDEXES = /* @__PURE__ */ new Uint32Array(0);

/** Runs over `items[index .. end]`; returns the index of the item it stopped at, or `end`. */
export type Loop = (run: Run, items: any[], index: number, end: number) => number;

/** When a function gets its own loop: after enough items (true), immediately, or never (false). */
export type Stamping = boolean | "always";

/** After this many items a function gets its own loop. Compiling and optimising a loop costs about as much as the
 * shared loop for this many items, so the total is never more than twice the optimum.
 */
const WORTHWHILE = 1 << 16;

// Checks `value` for a promise. Strings are checked first, because most values are strings; this halves the cost.
const IF_PROMISE = `if (typeof value !== "string" && typeof value === "object" && value !== null && typeof value.then === "function")`;
const STOP = `{ run.value = value; run.thrown = false; return index; }`;

/** A kind of loop: the source of its body, and the loop that all stages share, as a plain function with the same source.
 *
 * The first items are processed by the shared one, when no code is compiled yet and each call is expensive, so few values
 * are checked for promises. Each kind is a constant of its own, so that a bundle contains only those that it uses.
 */
export interface LoopKind {
  readonly name: string;
  readonly body: () => string;
  readonly shared: (f: (...of: any[]) => any) => Loop;
}

/** `items[i] = f(items[i])` */
export const MAP: LoopKind = {
  name: "map",
  body: () => `
    const value = f(items[index]);
    ${IF_PROMISE} ${STOP}
    items[index] = value;`,
  shared: (f) => (run, items, index, end) => {
    try {
      for (; index < end; index++) {
        const value = f(items[index]);
        if (typeof value === "object" && isPromise(value)) return stop(run, value, index);
        items[index] = value;
      }
    } catch (error) {
      thrown(run, error);
    }
    return index;
  },
};

/** Like `map`, for a function that is expected to return promises. */
export const COLLECT: LoopKind = {
  name: "collect",
  body: () => `
    items[index] = f(items[index]);`,
  shared: (f) => (run, items, index, end) => {
    try {
      for (; index < end; index++) items[index] = f(items[index]);
    } catch (error) {
      thrown(run, error);
    }
    return index;
  },
};

/** Only calls the function. */
export const EACH: LoopKind = {
  name: "each",
  body: () => `
    const value = f(items[index]);
    ${IF_PROMISE} ${STOP}`,
  shared: (f) => (run, items, index, end) => {
    try {
      for (; index < end; index++) {
        const value = f(items[index]);
        if (typeof value === "object" && isPromise(value)) return stop(run, value, index);
      }
    } catch (error) {
      thrown(run, error);
    }
    return index;
  },
};

/** Keeps items for which `f` returns true. */
export const FILTER: LoopKind = {
  name: "filter",
  body: () => `
    const item = items[index];
    const value = f(item);
    if (value === true) { from[kept] = index; items[kept++] = item; }
    else if (value !== false) {
      ${IF_PROMISE} { run.kept = kept; run.value = value; run.thrown = false; return index; }
      if (value) { from[kept] = index; items[kept++] = item; }
    }`,
  shared: (f) => (run, items, index, end) => {
    const { from } = run;
    let { kept } = run;
    try {
      for (; index < end; index++) {
        const item = items[index];
        const value = f(item);
        if (typeof value === "object" && isPromise(value)) {
          run.kept = kept;
          return stop(run, value, index);
        }
        if (value) {
          from[kept] = index;
          items[kept++] = item;
        }
      }
    } catch (error) {
      thrown(run, error);
    }
    run.kept = kept;
    return index;
  },
};

/** `f(state, item)` */
export const SCAN: LoopKind = {
  name: "scan",
  body: () => `
    const value = f(run.state, items[index]);
    ${IF_PROMISE} ${STOP}
    items[index] = value;`,
  shared: (f) => (run, items, index, end) => {
    try {
      for (; index < end; index++) {
        const value = f(run.state, items[index]);
        if (typeof value === "object" && isPromise(value)) return stop(run, value, index);
        items[index] = value;
      }
    } catch (error) {
      thrown(run, error);
    }
    return index;
  },
};

/** `state = f(state, item)` */
export const FOLD: LoopKind = {
  name: "fold",
  body: () => `
    const value = f(run.state, items[index]);
    ${IF_PROMISE} ${STOP}
    run.state = value;`,
  shared: (f) => (run, items, index, end) => {
    try {
      for (; index < end; index++) {
        const value = f(run.state, items[index]);
        if (typeof value === "object" && isPromise(value)) return stop(run, value, index);
        run.state = value;
      }
    } catch (error) {
      thrown(run, error);
    }
    return index;
  },
};

/**
 * The number of items per iteration of a loop: the overhead of an iteration is a quarter of a stage that does
 * nothing.
 */
const UNROLLED = 4;

/**
 * Returns the source of a loop. The name makes each source unique, because equal ones would share the engine's type
 * feedback.
 */
function text(kind: LoopKind, name: string): string {
  const counts = kind.name === "filter";
  // A body that stops returns `index`, so each body has to update it.
  const bodies = Array.from({ length: UNROLLED }, () => `{${kind.body()}\n    index++; }`).join("\n    ");
  return `return function ${name}(run, items, index, end) {
  ${counts ? "const { from } = run; let { kept } = run;" : ""}
  try {
    for (const last = end - ${UNROLLED}; index <= last;) {
    ${bodies}
    }
    for (; index < end; index++) {${kind.body()}
    }
  } catch (error) {
    run.value = error;
    run.thrown = true;
  }
  ${counts ? "run.kept = kept;" : ""}
  return index;
};`;
}

/** Returns whether a value is a promise or a thenable. */
export function isPromise(value: any): value is PromiseLike<any> {
  return typeof value !== "string" && typeof value === "object" && value !== null && typeof value.then === "function";
}

function stop(run: Run, value: any, index: number): number {
  run.value = value;
  run.thrown = false;
  return index;
}

function thrown(run: Run, error: unknown): void {
  run.value = error;
  run.thrown = true;
}

let allowed: boolean | undefined;

/**
 * Returns whether stages can get their own loops, which a content security policy that forbids `new Function`
 * prevents.
 */
export function stampingAllowed(): boolean {
  if (allowed === undefined) {
    try {
      allowed = new Function("return true")();
    } catch {
      allowed = false;
    }
  }
  return allowed === true;
}

/** A function's loops, which keep the engine's type feedback for the next pipeline, and its item count. */
interface Known {
  readonly loops: Map<LoopKind, Loop>;
  items: number;
}

const known = new WeakMap<object, Known>();
let stamps = 0;

function stamp(kind: LoopKind, f: (...of: any[]) => any, loops: Map<LoopKind, Loop>): Loop {
  const loop = loops.get(kind) ?? (new Function("f", text(kind, `${kind.name}_${stamps++}`))(f) as Loop);
  loops.set(kind, loop);
  return loop;
}

/** The loop of one stage: the shared loop first, its own loop after enough items. */
export class StageLoop {
  #loop: Loop;
  #waits: boolean;
  readonly #known: Known;

  constructor(
    readonly kind: LoopKind,
    readonly f: (...of: any[]) => any,
    stamping: Stamping,
  ) {
    this.#known = known.get(f) ?? { loops: new Map(), items: 0 };
    known.set(f, this.#known);
    this.#loop = kind.shared(f);
    this.#waits = stamping !== false && stampingAllowed();
    if (this.#waits && (stamping === "always" || this.#known.items >= WORTHWHILE)) this.#stamp();
  }

  /** Runs over `items[index .. end]`; returns the index of the item it stopped at, or `end`. */
  run(run: Run, items: any[], index: number, end: number): number {
    const at = this.#loop(run, items, index, end);
    if (this.#waits) {
      this.#known.items += at - index;
      if (this.#known.items >= WORTHWHILE) this.#stamp();
    }
    return at;
  }

  #stamp(): void {
    this.#waits = false;
    this.#loop = stamp(this.kind, this.f, this.#known.loops);
  }
}

/** Returns whether a function is declared `async`, so that a promise can be expected. */
export function isAsync(f: unknown): boolean {
  return f instanceof (async () => {}).constructor;
}
