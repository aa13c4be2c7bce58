// One picture large, in the flow of the page: it covers neither STOP nor an alarm. It has no key of its own, because
// Space and Escape stop the arm, also while a picture is large.

const byId = (id) => document.getElementById(id);
let shown = null;

export function open(picture) {
  shown = picture;
  byId("zoom").hidden = false;
  update(picture);
  byId("zoom").scrollIntoView({ block: "nearest" });
  byId("zoom-close").focus({ preventScroll: true });
}

export function close() {
  const opener = shown?.figure.querySelector("button");
  shown = null;
  byId("zoom").hidden = true;
  opener?.focus();
}

// Called for every picture that was painted, and for every new caption.
export function update(picture) {
  if (!shown || picture.canvas !== shown.canvas) return;
  const from = picture.canvas;
  const to = byId("zoom-picture");
  if (to.width !== from.width || to.height !== from.height) [to.width, to.height] = [from.width, from.height];
  to.getContext("2d").drawImage(from, 0, 0);
  to.classList.toggle("old", picture.figure.classList.contains("old"));
  const text = picture.caption.textContent;
  if (byId("zoom-title").textContent !== text) byId("zoom-title").textContent = text;
}

byId("zoom-close").addEventListener("click", close);
