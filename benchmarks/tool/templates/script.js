// Everything is there without it: it adds a switch of the theme, and sorts tables.
"use strict";

const theme = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
const show = () => {
  theme.textContent = isDark() ? "Light theme" : "Dark theme";
};
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  show();
});
dark.addEventListener("change", show);
theme.hidden = false;
show();

// On a narrow screen the contents would be a screen of links before anything else.
const contents = document.querySelector("nav details");
if (matchMedia("(max-width: 60rem)").matches) contents.open = false;

// A place in the page may be inside something that is folded.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
};
addEventListener("hashchange", unfold);

for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, body, head));
  }
}

function sort(table, body, head) {
  const column = head.cellIndex;
  const direction = head.ariaSort === "ascending" ? -1 : 1;
  const key = (row) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent;
  };
  const compare = (a, b) => {
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1; // what has no number comes last
    return direction * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  };
  const rows = [...body.rows].map((row) => ({ row, key: key(row) }));
  rows.sort((a, b) => compare(a.key, b.key));
  body.append(...rows.map(({ row }) => row));
  for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
  head.ariaSort = direction > 0 ? "ascending" : "descending";
}
