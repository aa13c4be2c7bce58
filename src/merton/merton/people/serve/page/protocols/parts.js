// Parts that several forms share. Every text comes in as text, never as markup.

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A text of several lines, or nothing where it is empty.
export function passage(parent, title, text, level = "h2") {
  if (!text) return;
  const box = element("section", "passage");
  box.append(element(level, "", title), element("p", "text", text));
  parent.append(box);
}

// Pictures beside each other, or videos that play together. `shown` has [medium, description] of each.
export function pictures(parent, shown, tools) {
  const media = shown.map(([medium]) => medium);
  if (!media.length) return;
  const box = element("div", media.length > 1 ? "media beside" : "media");
  parent.append(box);
  const labels = shown.length > 1 ? shown.map(([, description]) => description) : [];
  if (media.some((medium) => medium.kind === "reel")) tools.player(box, media, labels);
  else for (const [medium, description] of shown) box.append(tools.image(medium, description));
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
    focus: () => (inputs.find((input) => input.checked) || inputs[0]).focus(),
  };
}

// Calls `act` with each plain key that is pressed anywhere on the page while the form is on it.
export function onKey(root, act) {
  const listen = (event) => {
    if (!root.isConnected) {
      document.removeEventListener("keydown", listen);
      return;
    }
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (event.target instanceof Element && event.target.closest("textarea, input[type=text], select, dialog")) return;
    if (act(event.key.toLowerCase())) event.preventDefault();
  };
  document.addEventListener("keydown", listen);
}
