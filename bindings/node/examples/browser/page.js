// The page: the input, the buttons, the table.

import { stampingAllowed } from "../../dist/browser.js";
import { measure } from "./measure.js";

const counts = [0, 1, 10, 100];
/** `?rounds=1` gives quick results. */
const rounds = Number(new URLSearchParams(location.search).get("rounds") ?? 3);

const [form, status, verdict, loops, measureButton, stopButton] = [
  "form",
  "status",
  "verdict",
  "loops",
  "measure",
  "stop",
].map((id) => document.getElementById(id));
const body = document.querySelector("#results tbody");
const [countField, fileField, addressField] = ["count", "file", "address"].map((id) => document.getElementById(id));
const exact = new Intl.NumberFormat();
const rough = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const short = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3, notation: "compact" });

/** The cost of a stage: a difference of two measurements, which is noise if it is negative. */
const costOf = (perStage) => (perStage > 0 ? `${rough.format(perStage)} ns` : "less than can be measured");

/** Opens the chosen bytes. */
async function chosen() {
  switch (new FormData(form).get("source")) {
    case "file": {
      const [file] = fileField.files;
      if (file === undefined) throw new Error("Please choose a file.");
      return () => decompressed(file.stream());
    }
    case "address": {
      const address = addressField.value;
      const open = async () => {
        const response = await fetch(address);
        if (!response.ok) throw new Error(`${address}: ${response.status} ${response.statusText}`);
        return decompressed(response.body);
      };
      return open;
    }
    default: {
      const sample = makeSample(countField.valueAsNumber);
      return () => sample.stream();
    }
  }
}

/** Decompresses a stream if its first bytes are those of gzip. Browsers do so only for a response that says it is. */
async function decompressed(stream) {
  const [beginning, all] = stream.tee();
  const reader = beginning.getReader();
  const { value } = await reader.read();
  // It waits until the other one is cancelled, too.
  reader.cancel();
  const isGzip = value?.[0] === 0x1f && value[1] === 0x8b;
  return isGzip ? all.pipeThrough(new DecompressionStream("gzip")) : all;
}

/** Lines like those of a log. */
function makeSample(count) {
  const parts = [];
  for (let line = 0; line < count; line++) {
    parts.push(`${line} GET /stage/${line % 97} ${"·".repeat(line % 5)} took ${(line * 7919) % 1000} µs\n`);
  }
  return new Blob(parts);
}

function row({ count, ours, theirs }) {
  const line = document.createElement("tr");
  Object.assign(line.dataset, { stages: count, ours: ours.lines, theirs: theirs.lines });
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = exact.format(count);
  const faster = document.createElement("td");
  const times = document.createElement("strong");
  times.textContent = `${rough.format(theirs.nanoseconds / ours.nanoseconds)}×`;
  faster.append(times);
  line.append(head, cell(ours, "ours"), cell(theirs, "theirs"), faster);
  return line;
}

function cell({ nanoseconds, perStage }, whose) {
  const td = document.createElement("td");
  const rate = document.createElement("strong");
  rate.textContent = `${short.format(1e9 / nanoseconds)}/s`;
  const bar = document.createElement("span");
  bar.className = `bar ${whose}`;
  bar.dataset.rate = 1e9 / nanoseconds;
  const cost = document.createElement("small");
  cost.textContent = perStage === undefined ? "no stage" : costOf(perStage);
  td.append(rate, bar, cost);
  return td;
}

function drawBars() {
  const bars = [...body.querySelectorAll(".bar")];
  const most = Math.max(...bars.map((bar) => Number(bar.dataset.rate)));
  for (const bar of bars) bar.style.width = `${(100 * bar.dataset.rate) / most}%`;
}

function conclude({ count, ours, theirs }) {
  const times = ours.perStage > 0 ? theirs.perStage / ours.perStage : 0;
  const compared = times > 1 ? `, ${rough.format(times)} times as much` : "";
  return (
    `With ${exact.format(count)} stages, each costs ${costOf(ours.perStage)} per line here and ` +
    `${costOf(theirs.perStage)} in TransformStream${compared}.`
  );
}

let running;

async function run() {
  running = new AbortController();
  const { signal } = running;
  measureButton.disabled = true;
  stopButton.disabled = false;
  body.replaceChildren();
  verdict.textContent = "";
  const say = (text) => {
    status.textContent = text;
  };
  say("Preparing…");
  try {
    const open = await chosen();
    let last;
    let done = 0;
    say(`Measuring without a stage…`);
    for await (const result of measure(open, { counts, rounds, signal })) {
      last = result;
      body.append(row(result));
      drawBars();
      const next = counts[++done];
      if (next !== undefined) say(`Measuring ${next} stage${next === 1 ? "" : "s"}…`);
    }
    verdict.textContent = conclude(last);
    say(`Done: ${exact.format(last.ours.lines)} lines, and every count is right.`);
  } catch (error) {
    say(signal.aborted ? "Stopped." : error.message);
  } finally {
    const hadFocus = document.activeElement === stopButton;
    measureButton.disabled = false;
    stopButton.disabled = true;
    if (hadFocus) measureButton.focus();
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
stopButton.addEventListener("click", () => running?.abort());

// Filling in a field selects its source.
for (const [field, value] of [
  [countField, "sample"],
  [fileField, "file"],
  [addressField, "address"],
]) {
  field.addEventListener("input", () => {
    form.elements.source.value = value;
  });
}

const kind = stampingAllowed() ? "stamped" : "shared";
loops.dataset.kind = kind;
loops.textContent =
  kind === "stamped"
    ? "Stamped: new Function is allowed here, and each stage that is worth it gets its own loop."
    : "Shared: a content security policy forbids new Function here, and all stages share one loop.";
status.textContent = "Ready.";
measureButton.disabled = false;
