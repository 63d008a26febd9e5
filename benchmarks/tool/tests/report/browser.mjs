// The report in a browser: `node browser.mjs PAGE`, where playwright-core is that of bindings/node.
//
// Pictures are kept in the directory MILLSTREAM_PICTURES, to be looked at.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(new URL("../../../../bindings/node/package.json", import.meta.url))("playwright-core");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const pictures = process.env.MILLSTREAM_PICTURES;
const address = pathToFileURL(resolve(process.argv.at(-1))).href;
const profile = mkdtempSync(join(tmpdir(), "millstream-"));
let context;

before(async () => {
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
  context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, args });
  context.setDefaultTimeout(60_000);
});

after(async () => {
  await context?.close();
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
});

/** The page in a window of this width, and everything that it complains about or asks others for. */
async function open(width) {
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (/^(https?|wss?|ftp):/.test(request.url())) complaints.push(request.url());
  });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(address);
  return { page, complaints };
}

async function picture(page, name) {
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

/** Lightness of the ground and of the ink, 0 to 255. */
function lightness(page) {
  return page.evaluate(() => {
    const style = getComputedStyle(document.body);
    return [style.backgroundColor, style.color].map((color) => Number(/\d+/.exec(color)));
  });
}

test("every question has its chart and its table, and nobody complains", async () => {
  const { page, complaints } = await open(1280);
  const empty = await page.$$eval("section.question", (sections) =>
    sections
      .filter((section) => section.querySelector("tr[class] td[data-value]") !== null)
      .filter((section) => {
        const chart = [...section.querySelectorAll("figure [role=img]")].find((one) => one.checkVisibility());
        const { width, height } = chart?.getBoundingClientRect() ?? { width: 0, height: 0 };
        return width < 300 || height < 20 || !chart.ariaLabel || !section.querySelector("caption");
      })
      .map((section) => section.id),
  );
  assert.deepEqual(empty, []);
  // Marks are in colours, not in the browser's black.
  const fills = await page.$$eval(".mark.millstream", (marks) => [...new Set(marks.map((mark) => getComputedStyle(mark).fill))]);
  assert.equal(fills.length, 1);
  assert.notEqual(fills[0], "rgb(0, 0, 0)");
  await picture(page, "light");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("the dark theme, and the switch between both", async () => {
  const { page, complaints } = await open(1280);
  await page.emulateMedia({ colorScheme: "dark" });
  let [ground, ink] = await lightness(page);
  assert(ground < 64 && ink > 192, `${ground}, ${ink}`);
  await picture(page, "dark");
  await page.getByRole("button", { name: "Light theme" }).press("Enter");
  [ground, ink] = await lightness(page);
  assert(ground > 192 && ink < 64, `${ground}, ${ink}`);
  await page.getByRole("button", { name: "Dark theme" }).press("Enter");
  assert((await lightness(page))[0] < 64);
  assert.deepEqual(complaints, []);
  await page.close();
});

for (const width of [360, 768]) {
  test(`nothing is wider than a window of ${width} px`, async () => {
    const { page, complaints } = await open(width);
    await page.$$eval("details", (all) => all.forEach((one) => (one.open = true)));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
    await page.$$eval("main details", (all) => all.forEach((one) => (one.open = one.hasAttribute("data-open"))));
    await picture(page, `light-${width}`);
    assert.deepEqual(complaints, []);
    await page.close();
  });
}

test("by keyboard: the skip link first, then from top to bottom, and the focus is seen", async () => {
  const { page } = await open(1280);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the overview");
  assert(await page.evaluate(() => document.activeElement.getBoundingClientRect().left >= 0));
  await page.keyboard.press("Tab");
  assert.match(await page.evaluate(() => document.activeElement.getAttribute("href") ?? ""), /^#machine$/);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "theme");
  // What can be focused comes in the order of the page, and says that it is focused.
  let last = await page.evaluateHandle(() => document.activeElement);
  for (let stop = 0; stop < 40; stop++) {
    await page.keyboard.press("Tab");
    const [follows, outline] = await page.evaluate((last) => {
      const { activeElement } = document;
      const follows = (last.compareDocumentPosition(activeElement) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
      return [follows, getComputedStyle(activeElement).outlineStyle];
    }, last);
    assert(follows, `stop ${stop}`);
    assert.notEqual(outline, "none", `stop ${stop}`);
    last = await page.evaluateHandle(() => document.activeElement);
  }
  await page.close();
});

test("a flame graph can be looked into, in its frame", async () => {
  const { page, complaints } = await open(1280);
  await page.locator("#stages summary", { hasText: "Flame graph" }).click();
  const graph = page.frameLocator("#stages iframe");
  const read = graph.locator("#frames g", { has: graph.locator("title", { hasText: "read" }) }).locator("rect");
  const before = (await read.boundingBox()).width;
  await read.click({ force: true }); // its name is over it
  await graph.locator("#frames g.parent").first().waitFor();
  assert((await read.boundingBox()).width > before * 1.2);
  await picture(page, "flame");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("headings go down one level at a time, and tables say what they are", async () => {
  const { page } = await open(1280);
  const levels = await page.$$eval("h1, h2, h3, h4", (all) => all.map((one) => Number(one.tagName[1])));
  assert.equal(levels.filter((level) => level === 1).length, 1);
  levels.forEach((level, at) => assert(at === 0 || level <= levels[at - 1] + 1, `heading ${at}`));
  const nameless = await page.$$eval("table", (all) => all.filter((one) => !one.caption?.textContent.trim()).length);
  assert.equal(nameless, 0);
  const scopeless = await page.$$eval("th", (all) => all.filter((one) => !["row", "col"].includes(one.scope)).length);
  assert.equal(scopeless, 0);
  await page.close();
});

test("a table is sorted by the head that is pressed", async () => {
  const { page, complaints } = await open(1280);
  const table = page.locator("#millstream-wins details table").first();
  const values = (column) =>
    table.locator(`tbody tr > :nth-child(${column})`).evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.value)));
  const head = table.getByRole("button", { name: "median" });
  const up = await values(2);
  assert.deepEqual(up, up.toSorted((a, b) => a - b));
  await head.press("Enter");
  await head.press("Enter");
  assert.deepEqual(await values(2), up.toReversed());
  assert.equal(await table.locator("thead [aria-sort]").getAttribute("aria-sort"), "descending");
  assert.deepEqual(complaints, []);
  await page.close();
});

test("without JavaScript everything is there", async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  const page = await browser.newPage({ javaScriptEnabled: false });
  await page.goto(address);
  assert(await page.getByRole("heading", { name: "Overview" }).isVisible());
  assert.equal(await page.getByRole("button").count(), 0);
  await page.locator("section.question details:not([open]) summary").first().click();
  await page.getByRole("navigation").getByRole("link", { name: "Machine" }).click();
  await browser.close();
});
