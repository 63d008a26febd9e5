// Tests the browser's entry point in a browser: the page of examples/browser, with and without a content security
// policy.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { transformSync } from "esbuild";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { repository } from "./twin.js";

const root = fileURLToPath(new URL("bindings/node/", repository));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const lacksBrowser = !existsSync(executablePath);
if (lacksBrowser && process.env.CI === "true") throw new Error(`there is no ${executablePath}: see tools/setup`);
const skip = lacksBrowser ? `SKIPPED, there is no ${executablePath}: see tools/setup` : false;

// The screenshots are written to this directory, for inspection.
const pictures = process.env.MILLSTREAM_PICTURES;

const directory = mkdtempSync(join(tmpdir(), "millstream-"));
let context: BrowserContext;
let server: { address: string; strict: string; close(): void };

before(async () => {
  if (skip) return;
  const { serve } = await import(new URL("bindings/node/examples/browser/serve.mjs", repository).href);
  server = await serve();
  context = await chromium.launchPersistentContext(join(directory, "profile"), {
    executablePath,
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
    viewport: { width: 1024, height: 1000 },
  });
  context.setDefaultTimeout(120_000);
});

after(async () => {
  await context?.close();
  server?.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

// As many rounds as the page's default, or one.
const ROUNDS = process.env.MILLSTREAM_DEEP ? 3 : 1;

/** A new page, with all its errors and external requests. */
async function open(address: string, rounds = ROUNDS): Promise<{ page: Page; complaints: string[] }> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(address).origin)) complaints.push(request.url());
  });
  await page.goto(`${address}?rounds=${rounds}`);
  await page.getByText("Ready.").waitFor();
  return { page, complaints };
}

async function picture(page: Page, name: string): Promise<void> {
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

/** Measures, and returns what each row reports about its lines. */
async function measure(page: Page): Promise<{ stages: number; ours: number; theirs: number }[]> {
  await page.getByRole("button", { name: "Measure" }).click();
  await page.getByText(/every count is right/).waitFor();
  return page.$$eval("#results tbody tr", (rows) =>
    rows.map((row) => {
      const { stages, ours, theirs } = (row as unknown as { dataset: Record<string, string> }).dataset;
      return { stages: Number(stages), ours: Number(ours), theirs: Number(theirs) };
    }),
  );
}

test("the bundle contains no code of Node", () => {
  const { code } = transformSync(readFileSync(join(root, "dist/browser.js"), "utf8"), { minifyWhitespace: true });
  assert.doesNotMatch(code, /["']node:|\brequire\(|\b__dirname\b/);
  assert.doesNotMatch(code, /(?<![\w.$])(Buffer|global)\b/);
  // These are accessed only through globalThis, which may not have them.
  const rest = code.replaceAll(/\{process:(\w+)\}=globalThis|\{process\}=globalThis|\bprocess\d*\?\./g, "");
  assert.doesNotMatch(rest, /(?<![\w$])process\d*\b/);
});

for (const policy of ["without a policy", "under a content security policy"] as const) {
  const isStrict = policy !== "without a policy";
  const address = () => (isStrict ? server.strict : server.address);

  test(`a sample, a file and an address, ${policy}`, { skip }, async () => {
    const { page, complaints } = await open(address());
    const kind = await page.locator("#loops").getAttribute("data-kind");
    assert.equal(kind, isStrict ? "shared" : "stamped");

    await page.getByLabel("Number of lines").fill("60000");
    const sample = await measure(page);
    assert.deepEqual(
      sample.map(({ stages, ours }) => [stages, ours]),
      [0, 1, 10, 100].map((stages) => [stages, 60_000]),
    );
    // Only some of them, to save time: 50,000 calls of stages.
    assert.deepEqual(
      sample.map(({ theirs }) => theirs),
      [50_000, 25_000, 4546, 496],
    );
    assert.match(
      (await page.locator("#verdict").textContent()) ?? "",
      /^With 100 stages, each costs .+ per line here and .+ in TransformStream/,
    );
    await picture(page, isStrict ? "strict" : "light");

    const file = join(directory, "lines.txt");
    const content = `${"Grüße\r\n→\n".repeat(500)}the last`;
    writeFileSync(file, isStrict ? gzipSync(content) : content);
    await page.getByLabel("File", { exact: true }).setInputFiles(file);
    assert(await page.getByLabel("A file of yours").isChecked());
    for (const { stages, ours, theirs } of await measure(page)) {
      assert.equal(ours, 1001);
      assert.equal(theirs, stages === 100 ? 496 : 1001);
    }

    await page.getByLabel("An address, by fetch").check();
    for (const { ours } of await measure(page)) assert.equal(ours, 100_000);
    assert.doesNotMatch((await page.locator("#results").textContent()) ?? "", /[-−]\d/, "a negative cost");
    assert.deepEqual(complaints, []);
    await page.close();
  });
}

test("without a server, the page shows how to serve it", { skip }, async () => {
  const page = await context.newPage();
  await page.goto(new URL("bindings/node/examples/browser/index.html", repository).href);
  await page.getByText("node examples/browser/serve.mjs").waitFor();
  assert(await page.getByRole("button", { name: "Measure" }).isDisabled());
  await page.close();
});

test("errors are shown", { skip }, async () => {
  // The page measures until it is stopped.
  const { page, complaints } = await open(server.address, 1e6);
  const status = page.locator("#status");
  await page.getByLabel("A file of yours").check();
  await page.getByRole("button", { name: "Measure" }).click();
  await page.getByText("Please choose a file.").waitFor();
  await page.getByLabel("Address", { exact: true }).fill("nothing.txt");
  await page.getByRole("button", { name: "Measure" }).click();
  await page.getByText("nothing.txt: 404 Not Found").waitFor();
  // The browser reports the missing address, too.
  assert.equal(complaints.length, 1);

  await page.getByLabel("Number of lines").fill("100000");
  await page.getByRole("button", { name: "Measure" }).click();
  await page.getByText("Measuring").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.").waitFor();
  assert.equal(await status.getAttribute("role"), "status");
  await page.close();
});

test("by keyboard, from top to bottom", { skip }, async () => {
  const { page } = await open(server.address);
  const order: string[] = [];
  for (let stop = 0; stop < 5; stop++) {
    await page.keyboard.press("Tab");
    const focused = page.locator(":focus");
    order.push((await focused.getAttribute("id")) ?? (await focused.getAttribute("value")) ?? "");
  }
  assert.deepEqual(order, ["sample", "count", "file", "address", "measure"]);
  await page.getByLabel("Number of lines").fill("1000");
  await page.getByLabel("Number of lines").press("Enter");
  await page.getByText(/every count is right/).waitFor();
  // Each field has a name, and so has each column.
  for (const name of ["Number of lines", "File", "Address"]) {
    assert.equal(await page.getByLabel(name, { exact: true }).count(), 1, name);
  }
  assert.equal(await page.getByRole("columnheader").count(), 4);
  assert.equal(await page.getByRole("rowheader").count(), 4);
  await page.close();
});

test("in dark mode, and at the width of a phone", { skip }, async () => {
  const { page, complaints } = await open(server.address);
  await page.getByLabel("Number of lines").fill("20000");
  await measure(page);
  await page.emulateMedia({ colorScheme: "dark" });
  const [ground, ink] = await page.evaluate(() => {
    const style = (globalThis as any).getComputedStyle((globalThis as any).document.body);
    return [style.backgroundColor, style.color].map((color: string) => Number(/\d+/.exec(color)));
  });
  assert(ground < 64 && ink > 192);
  await picture(page, "dark");
  await page.setViewportSize({ width: 360, height: 740 });
  // No element is wider than the page, and the table is not wider than the elements above it.
  const [width, table, fields] = await page.evaluate(() => {
    const { document } = globalThis as any;
    const right = (selector: string) => document.querySelector(selector).getBoundingClientRect().right;
    return [document.documentElement.scrollWidth, right("table"), right("fieldset")];
  });
  assert.equal(width, 360);
  assert(table <= fields, `${table} > ${fields}`);
  await picture(page, "dark-360");
  await page.emulateMedia({ colorScheme: "light" });
  await picture(page, "light-360");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("streams made of chains, in a browser", { skip }, async () => {
  const { page } = await open(server.address);
  const text = await page.evaluate(async (entry) => {
    const { map, toWebTransform, toWebReadable, from } = await import(entry);
    const chain = toWebTransform(map((line: string) => line.toUpperCase()));
    const piped = toWebReadable(from("grüße\n→")).pipeThrough(chain);
    return new Response(piped).text();
  }, "../../dist/browser.js");
  assert.equal(text, "GRÜSSE\n→\n");
  await page.close();
});

test("a policy without WebAssembly: the error says what to add, and other functions work", { skip }, async () => {
  const page = await context.newPage();
  await page.route(server.address, async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      headers: { ...response.headers(), "content-security-policy": "script-src 'self'" },
    });
  });
  await page.goto(server.address);
  const [letters, kind, message] = await page.evaluate(async (entry) => {
    const { from } = await import(entry);
    const ones = { trim: { head: 0, tail: 0, carriageReturn: false }, step: () => ({ length: 1, terminated: true }) };
    const letters: string[] = [];
    for await (const letter of from("ab", { framer: ones })) letters.push(letter);
    const error = await from("one\n")
      .nextBatch()
      .catch((error: unknown) => error);
    return [letters, error.kind, error.message];
  }, "../../dist/browser.js");
  assert.deepEqual([letters, kind], [["a", "b"], "unsupported"]);
  assert.match(message, /'wasm-unsafe-eval'/);
  await page.close();
});
