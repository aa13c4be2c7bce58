// The operator's page: the statistics as the server renders them, and again when they change.

import { getBlob, Stranger } from "./http.js";

const AGAIN_MS = 15000;
let shown = "";

async function refresh() {
  try {
    const html = await (await getBlob("/api/statistics.html")).text();
    if (html !== shown) replace(html);
  } catch (error) {
    const state = document.getElementById("state");
    if (state) state.textContent = error.message;
    if (error instanceof Stranger) return;
  }
  setTimeout(refresh, AGAIN_MS);
}

// Every text in the server's page is escaped, and the policy of this page runs no script in it.
function replace(html) {
  const found = new DOMParser().parseFromString(html, "text/html");
  const open = [...document.querySelectorAll("details")].map((one) => one.open);
  found.querySelectorAll("details").forEach((one, place) => { one.open = open[place] ?? false; });
  document.title = found.title;
  document.body.replaceChildren(...found.body.childNodes);
  shown = html;
}

refresh();
