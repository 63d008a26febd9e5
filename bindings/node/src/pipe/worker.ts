/** What `parallel` and its worker threads exchange, and the program of the threads. */

/** The function that a thread calls: its source, or the module that exports it. */
export type Task = { readonly source: string } | { readonly module: string; readonly name: string };

/** Items in one message: as they are, or packed if all are bytes. */
export type Packed = unknown[] | { readonly bytes: Uint8Array; readonly ends: Uint32Array };

/** What a thread replies to a batch. */
export interface Answer {
  /** The results, without those of failed items. */
  readonly items: Packed;
  /** The index in the batch and the error of each failed item. If the pipeline stops at errors, the last has failed. */
  readonly failures: readonly (readonly [index: number, error: unknown])[];
  /** The time that the batch took in milliseconds; negative if it includes loading the function. */
  readonly elapsed: number;
  /** Why the thread has ended. */
  readonly broken?: unknown;
  /** Why the function could not be loaded. */
  readonly unloaded?: { readonly found?: string; readonly expected?: string; readonly cause?: unknown };
}

/** Packs items into one block of memory if all are bytes. It is a copy, which the message transfers. */
export function pack(items: unknown[]): { items: Packed; transfer: ArrayBuffer[] } {
  if (items.length === 0 || !items.every((item) => item instanceof Uint8Array)) return { items, transfer: [] };
  const all = items as Uint8Array[];
  const ends = new Uint32Array(all.length);
  let length = 0;
  for (let index = 0; index < all.length; index++) ends[index] = length += all[index].length;
  // Offsets have 32 bits.
  if (length > 0xffffffff) return { items, transfer: [] };
  const bytes = new Uint8Array(length);
  for (let index = 0; index < all.length; index++) bytes.set(all[index], index === 0 ? 0 : ends[index - 1]);
  return { items: { bytes, ends }, transfer: [bytes.buffer, ends.buffer] };
}

/** Returns packed items as views. */
export function unpack(items: Packed): unknown[] {
  if (Array.isArray(items)) return items;
  const { bytes, ends } = items;
  return Array.from(ends, (end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

/** Runs in the thread. It uses nothing but its arguments, because only its source gets there: bundlers would rewrite
 * `require` and `import` here, too.
 */
async function work(
  packing: typeof pack,
  unpacking: typeof unpack,
  { parentPort, workerData }: any,
  importing: (module: string) => Promise<any>,
): Promise<void> {
  let f: ((item: unknown) => unknown) | undefined;
  const load = async () => {
    if (workerData.source !== undefined) return new Function(`return (${workerData.source}\n)`)();
    const loaded = await importing(workerData.module);
    // A CommonJS module has its exports in the default one.
    return loaded[workerData.name] ?? loaded.default?.[workerData.name];
  };
  const copyable = (error: unknown) => {
    try {
      return structuredClone(error);
    } catch {
      return new Error(String(error));
    }
  };
  const answer = async (packed: Packed) => {
    const began = performance.now();
    const isFirst = f === undefined;
    if (f === undefined) {
      try {
        const loaded = await load();
        if (typeof loaded !== "function") {
          const found = `no function ${workerData.name}`;
          return { items: [], failures: [], elapsed: -1, unloaded: { found, expected: "a function" } };
        }
        f = loaded as (item: unknown) => unknown;
      } catch (cause) {
        return { items: [], failures: [], elapsed: -1, unloaded: { cause: copyable(cause) } };
      }
    }
    const items = unpacking(packed);
    const results: unknown[] = [];
    const failures: [number, unknown][] = [];
    for (let index = 0; index < items.length; index++) {
      try {
        const result: any = f(items[index]);
        results.push(typeof result?.then === "function" ? await result : result);
      } catch (error) {
        failures.push([index, copyable(error)]);
        if (workerData.stops) break;
      }
    }
    const elapsed = isFirst ? -1 : performance.now() - began;
    return { items: results, failures, elapsed };
  };
  const reply = async (packed: Packed) => {
    const { items: results, ...rest } = await answer(packed);
    const { items, transfer } = packing(results);
    try {
      parentPort.postMessage({ ...rest, items }, transfer);
    } catch {
      parentPort.postMessage(withoutUncloneable(results, rest));
    }
  };
  /** Results that cannot be copied become failures of their items. */
  const withoutUncloneable = (results: unknown[], rest: { failures: [number, unknown][] }) => {
    const kept: unknown[] = [];
    const failures: [number, unknown][] = [];
    let done = 0;
    let failed = 0;
    for (const result of results) {
      while (rest.failures[failed]?.[0] === done) {
        failures.push(rest.failures[failed++]);
        done++;
      }
      try {
        structuredClone(result);
        kept.push(result);
      } catch (error) {
        failures.push([done, copyable(error)]);
        if (workerData.stops) return { ...rest, items: kept, failures };
      }
      done++;
    }
    return { ...rest, items: kept, failures: [...failures, ...rest.failures.slice(failed)] };
  };
  let turn = Promise.resolve();
  parentPort.on("message", (packed: Packed) => {
    turn = turn.then(() => reply(packed));
  });
}

/** Returns the program of a thread. As an address, it is a module whatever the options of this process. */
export function program(): URL {
  // Compilers that keep names wrap functions in calls of `__name`, which the source of a function does not contain.
  const names = "globalThis.__name = (f) => f;";
  const threads = 'import * as threads from "node:worker_threads";';
  const text = `${threads}${names}(${work})(${pack}, ${unpack}, threads, (module) => import(module));`;
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}
