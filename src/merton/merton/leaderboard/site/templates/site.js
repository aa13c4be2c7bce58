"use strict";
// Without this script every page is complete; with it tables can be sorted and filtered, and the theme be chosen.
const root = document.documentElement;
const preferred = matchMedia("(prefers-color-scheme: dark)");
const memory = {
  read() { try { return localStorage.getItem("merton-theme"); } catch { return null; } },
  write(theme) { try { localStorage.setItem("merton-theme", theme); } catch { /* only for this page, then */ } },
};
const isDark = () => (root.dataset.theme || (preferred.matches ? "dark" : "light")) === "dark";
const stored = memory.read();
if (stored === "dark" || stored === "light") root.dataset.theme = stored; // before the page is drawn

function prepareTheme() {
  const button = document.getElementById("theme");
  const show = () => button.setAttribute("aria-pressed", String(isDark()));
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    memory.write(root.dataset.theme);
    show();
  });
  preferred.addEventListener("change", show);
  show();
}

// The state of the page's main table lives in the address: #find=blur&task=pick&sort=2d
const state = {
  read: () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : ""),
  write(changes) {
    const found = state.read();
    for (const [key, value] of Object.entries(changes)) value ? found.set(key, value) : found.delete(key);
    const text = found.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  },
};

const value = (row, column) => {
  const cell = row.cells[column], given = cell.dataset.value;
  const text = given === undefined ? cell.textContent.trim() : given;
  return text === "" || isNaN(text) ? text : Number(text);
};
const compare = (a, b) =>
  typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });

function sort(table, column, descending) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  const keyed = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
  keyed.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === ""); // missing values stay last in both orders
    return descending ? compare(b, a) : compare(a, b);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function prepareSorting(table) {
  const isMain = "filtered" in table.dataset;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // the best come first; a second click turns the order
      const now = head.getAttribute("aria-sort");
      const descending = now ? now === "ascending" : head.dataset.first === "d";
      sort(table, column, descending);
      if (isMain) state.write({ sort: `${column}${descending ? "d" : "a"}` });
    });
  });
  const wanted = isMain && /^(\d+)([ad])$/.exec(state.read().get("sort") || "");
  if (wanted && wanted[1] < table.tHead.rows[0].cells.length) sort(table, Number(wanted[1]), wanted[2] === "d");
}

function prepareFilter(form, table) {
  const rows = [...table.tBodies[0].rows], texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const fields = [...form.querySelectorAll("input, select")], count = form.querySelector(".count");
  const reset = form.querySelector("[type=reset]");
  const filter = () => {
    let shown = 0;
    for (const row of rows) {
      const fits = fields.every((field) =>
        !field.value || (field.name === "find" ? texts.get(row).includes(field.value.toLowerCase()) : row.dataset[field.name] === field.value));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} shown`;
    reset.hidden = fields.every((field) => !field.value);
  };
  for (const field of fields) {
    const wanted = state.read().get(field.name) || "";
    if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === wanted)) field.value = wanted;
    field.addEventListener("input", () => { state.write({ [field.name]: field.value }); filter(); });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const field of fields) { field.value = ""; state.write({ [field.name]: "" }); }
    filter();
  });
  form.hidden = false;
  filter();
}

document.addEventListener("DOMContentLoaded", () => {
  prepareTheme();
  const here = document.querySelector("header.site nav [aria-current]"), bar = here && here.closest("nav");
  if (bar) bar.scrollLeft = here.offsetLeft - bar.clientWidth / 2; // on a phone the pages stand in one row that scrolls
  document.querySelectorAll("table.sortable").forEach(prepareSorting);
  for (const box of document.querySelectorAll(".formula")) { // formulas that scroll are reached by Tab
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
  const form = document.querySelector("form.controls"), table = document.querySelector("table[data-filtered]");
  if (form && table) prepareFilter(form, table);
});
