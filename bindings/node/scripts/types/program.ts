// A program for Node, compiled in every module resolution: see scripts/lint.mjs.

import { Readable } from "node:stream";
import {
  asyncMap,
  type Batch,
  bson,
  collect,
  columns,
  command,
  csv,
  filter,
  from,
  lines,
  MillstreamError,
  map,
  open,
  parallel,
  pipe,
  pipeline,
  type Reader,
  remote,
  shell,
  through,
  toReadable,
  toTransform,
  toWebTransform,
  toWritable,
  Writer,
} from "millstream";

export async function use(signal: AbortSignal | undefined): Promise<number[]> {
  const found = await pipe(
    lines("a\n"),
    map((line) => line.length),
    filter((n) => n > 0),
    asyncMap(async (n) => n + 1, { concurrency: 2, ordered: undefined }),
    collect(),
  );
  await pipe(
    open("x", { as: "bytes", signal }),
    map((record) => record.subarray(1)),
    Writer.path("y", { durability: "all", level: undefined }),
  );
  const report = remote("s3://bucket/a.csv", { headers: { "Content-Type": "text/csv" }, anonymous: undefined });
  await pipe(
    open(remote(new URL("https://localhost/"), { headers: new Headers(), retryFor: 1000 })),
    Writer.path(report, { existing: "create_new" }),
  );
  open(remote("s3://bucket/key", { headers: [["A", "b"]] }));
  // @ts-expect-error: no other object is accepted
  open({ name: "s3://bucket/key" });
  for await (const n of pipe(
    [1],
    map((x) => x * 2),
  ))
    found.push(n);
  const sources: Reader[] = [
    command("ls", ["-l"], { stderr: "capture" }),
    pipeline([["ls"], ["sort"]]),
    shell("ls|sort"),
    command("sort", [], { input: Readable.from(["a"]), env: undefined }),
    command("sort", [], { input: lines("a"), successStatuses: [0, 1] }),
    command("sort", [], { stdin: new URL("file:///dev/null") }),
  ];
  const texts: string[] = await pipe(
    lines("a"),
    through("sort"),
    parallel((line: string) => line.trim()),
    collect(),
  );
  found.push(texts.length);
  for (const source of sources) for await (const line of source) found.push(line.length);
  Readable.from([])
    .pipe(
      toTransform(
        map((line) => line.length),
        map((n) => n.toFixed(2)),
      ),
    )
    .pipe(process.stdout);
  toReadable(["a"]).pipe(toWritable(collect()));
  new Response("a\n").body?.pipeThrough(toWebTransform(map((line) => line.trim())));
  toTransform(
    map((line) => line.length),
    // @ts-expect-error: a number has no such member
    map((n) => n.trim()),
  );
  await pipe(
    lines("a"),
    // @ts-expect-error: a string has no such member
    map((line) => line.nonsense),
    collect(),
  );
  // @ts-expect-error: there is no such option
  open("x", { encoding: "utf8" });
  for await (const row of from("a", { framer: csv({ delimiter: ";" }) }).rows()) found.push(row.join().length);
  for await (const { id } of open("x", { framer: csv(), as: "bytes" }).objects()) found.push(id?.byteLength ?? 0);
  const table = columns(new Response("a\n"), {
    format: csv(),
    infer: "off",
    schema: { a: ["int64!"], b: { c: "bool" } },
  });
  for await (const part of table) found.push(part.byteLength, table.rejects[0]?.error.line ?? 0);
  columns(open("x"), { schema: await table.fields(), threads: undefined });
  // @ts-expect-error: there is no such format
  columns("x", { format: "xml" });
  const batch: Batch | null = await from(new Uint8Array(1)).nextBatch();
  const end = await Writer.memory().close();
  found.push(batch?.length ?? 0, bson.columns(end.memory ?? new Uint8Array(0)).length);
  await using writer = Writer.nowhere();
  await writer.write("a");
  return found;
}

export function isFailedCommand(error: unknown): boolean {
  // @ts-expect-error: there is no such code
  if (error instanceof MillstreamError && error.code === "MILLSTREAM_NONSENSE") return false;
  return error instanceof MillstreamError && error.code === "MILLSTREAM_COMMAND_FAILED" && error.command?.status === 1;
}
