// A program for browsers, compiled in every module resolution: see scripts/lint.mjs.

import { collect, from, map, pipe, toWebTransform, Writer } from "millstream/browser";

export async function use(response: Response, signal: AbortSignal | undefined): Promise<number[]> {
  const lengths = await pipe(
    from(response, { signal }),
    map((line) => line.length),
    collect(),
  );
  const upper = new Response("a\n").body?.pipeThrough(toWebTransform(map((line) => line.toUpperCase())));
  await upper?.pipeTo(new WritableStream());
  await using writer = Writer.memory();
  await writer.write("a");
  return lengths;
}
