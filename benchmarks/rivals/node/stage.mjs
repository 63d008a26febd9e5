// The stages a user would write, and what they may wait for.

// What each stage does with each line: `noop` hands it on; `sum` adds its length into a sum of its own, so that no
// compiler can leave the stage out.
const works = {
  noop: "return line;",
  sum: "sums[i] += line.length; return line;",
};

// So many functions, declared async or not, each with code of its own: a compiler that has learned one knows nothing of the next, as in a
// program whose stages do different things.
export function makeStages(count, work, declared = "") {
  const body = works[work];
  if (body === undefined) throw new Error(`there is no stage ${work}, but ${Object.keys(works)}`);
  const sums = new Float64Array(count);
  const stages = Array.from({ length: count }, (_, i) =>
    new Function("sums", "i", `return ${declared} function stage${i}(line) { ${body} }`)(sums, i),
  );
  return { stages, sums };
}

// By mode: calls `forward` later, or for `sync` is not there.
export const hops = new Map([
  ["sync", undefined],
  ["async", (forward) => setImmediate(forward)],
  ["tick", (forward) => process.nextTick(forward)],
  ["microtask", (forward) => queueMicrotask(forward)],
]);
