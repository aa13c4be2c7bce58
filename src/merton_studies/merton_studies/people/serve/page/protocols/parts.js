// Parts that several forms share. Every text comes in as text, never as markup.

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A text of several lines under a title; null where it is empty.
export function passage(parent, title, text) {
  if (!text) return null;
  const box = element("div", "passage");
  box.append(element("h2", "", title), element("p", "text", text));
  parent.append(box);
  return box;
}

// Pictures beside each other, or videos that play together. `shown` has [medium, name] of each; names of several stand
// above them.
export function pictures(parent, shown, tools) {
  const media = shown.map(([medium]) => medium);
  if (!media.length) return;
  const several = media.length > 1;
  const box = element("div", several ? "sides" : "stage");
  parent.append(box);
  if (media.some((medium) => medium.kind === "reel")) {
    tools.player(box, media, several ? shown.map(([, name]) => name) : []);
    box.className = "";
    return;
  }
  for (const [medium, name] of shown) {
    const image = tools.image(medium, name);
    if (!several) {
      box.append(image);
      continue;
    }
    const figure = element("figure");
    figure.append(element("figcaption", "quiet", name), image);
    box.append(figure);
  }
}

// One choice of several, as radio buttons. `options` has [value, text, key] of each; a key chooses while nothing is
// typed into a field.
export function choices(parent, question, options, name, tools) {
  const box = element("fieldset", "choices");
  box.append(element("legend", "", question));
  const inputs = options.map(([value, text, key]) => {
    const label = element("label", "choice");
    const input = element("input");
    input.type = "radio";
    input.name = name;
    input.setAttribute("aria-keyshortcuts", key);
    input.addEventListener("change", () => tools.changed());
    label.append(input, element("span", "", text), element("kbd", "", key));
    box.append(label);
    return input;
  });
  parent.append(box);
  onKey(parent, (key) => {
    const place = options.findIndex((option) => option[2].toLowerCase() === key);
    if (place < 0) return false;
    inputs[place].click(); // tells of the change as a press does
    inputs[place].focus();
    return true;
  });
  return {
    box,
    value() {
      const place = inputs.findIndex((input) => input.checked);
      return place < 0 ? null : options[place][0];
    },
    onChange: (act) => box.addEventListener("change", act),
    focus: () => (inputs.find((input) => input.checked) || inputs[0]).focus({ preventScroll: true }),
  };
}

// Calls `act` with each plain key that is pressed while nothing is typed into a field; true says that it used the key.
export function onKey(parent, act) {
  const root = parent.closest(".question") ?? parent; // keys arrive there also while nothing has the focus
  root.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (root.closest("[inert]")) return;
    if (event.target.closest("textarea, select, input:not([type=radio]):not([type=checkbox])")) return;
    if (act(event.key.toLowerCase())) event.preventDefault();
  });
}
