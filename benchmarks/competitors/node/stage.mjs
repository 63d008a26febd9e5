// The stages that a user would write, and the events that they can wait for.

// What each stage does with each line: `noop` passes it on; `sum` adds its length to the stage's own sum, so that no
// compiler can remove the stage.
const works = {
  noop: "return line;",
  sum: "sums[i] += line.length; return line;",
};

// Creates this many functions, declared async or not. Each has its own code: what a compiler has learned about one does
// not apply to the next, as in a program whose stages do different things.
export function makeStages(count, work, declared = "") {
  const body = works[work];
  if (body === undefined) throw new Error(`there is no stage ${work}, but ${Object.keys(works)}`);
  const sums = new Float64Array(count);
  const stages = Array.from({ length: count }, (_, i) =>
    new Function("sums", "i", `return ${declared} function stage${i}(line) { ${body} }`)(sums, i),
  );
  return { stages, sums };
}

// The functions that call `forward` later, by mode; `sync` has none.
export const hops = new Map([
  ["sync", undefined],
  ["async", (forward) => setImmediate(forward)],
  ["tick", (forward) => process.nextTick(forward)],
  ["microtask", (forward) => queueMicrotask(forward)],
]);
