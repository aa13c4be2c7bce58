// The next, harder task of a picture. The expert's form is review().

import { choices, element, onKey, pictures } from "./parts.js";
import { line, tagFields } from "./tasks_fields.js";
import { alike, cleaned, fault } from "./tasks_rules.js";

export { review } from "./tasks_review.js";

const ORDINALS = ["first", "second", "third", "fourth", "fifth"];

export function show(root, slot, tools) {
  const { view } = slot;
  root.append(element("h2", "", `Write the ${ORDINALS[view.place]} of ${view.of} tasks for a robot`));
  if (view.sent_back) root.append(element("p", "warning", `The expert sent this picture back: ${view.sent_back}`));
  const split = element("div", "split");
  const [left, right] = [element("div", "column"), element("div", "column")];
  split.append(left, right);
  root.append(split);
  pictures(left, [[slot.media.image, "The picture that the tasks are for"]], tools);
  const tags = tagFields(left, slot, tools);
  const others = view.tasks.filter((task) => task.place !== view.place);
  soFar(right, view, others);
  const writing = writer(right, slot, others.map((task) => task.text), tools);
  const flags = choices(
    right,
    "Or say why there is no task",
    [["", "I write a task", "w"], ...view.flags.map(([name, words]) => [name, words, name[0]])],
    `flag-${slot.number}`,
    tools,
  );
  flags.box.querySelector("input").checked = true;
  flags.onChange(() => writing.enable(!flags.value()));
  return {
    read() {
      if (flags.value()) return { tags: null, task: "", reason: "", flag: flags.value() };
      const [chosen, written] = [tags.value(), writing.value()];
      return chosen && written ? { tags: chosen, ...written, flag: null } : null;
    },
    focus: () => (tags.firstOpen() ?? writing.field).focus(),
    keys: [
      ["1 to 9, 0", "begin with a verb"],
      ...view.flags.map(([name, words]) => [name[0], words]),
      ["w", "write a task after all"],
    ],
  };
}

function soFar(parent, view, others) {
  parent.append(element("h3", "", others.length ? "Tasks so far, the easiest first" : "There are no tasks yet"));
  if (!others.length) {
    parent.append(element("p", "hint", "Begin with an easy one: four others write harder ones after you."));
    return;
  }
  const list = element("ol", "so-far");
  for (const task of others) {
    const entry = element("li", "", task.text);
    entry.value = task.place + 1;
    list.append(entry);
  }
  parent.append(list);
  const last = others.at(-1).place < view.place;
  const place = last ? "harder than these" : `harder than those before number ${view.place + 1}, easier than those after it`;
  parent.append(element("p", "hint", `Yours is ${place}, and asks for another ability.`));
}

function writer(parent, slot, others, tools) {
  const { view } = slot;
  const box = element("fieldset", "writer");
  box.append(element("legend", "", "Your task"));
  const field = line(`Task ${view.place + 1}`, view.longest[0]);
  const why = line("Why it is another task all the same", view.longest[1]);
  const verdict = element("p", "hint");
  verdict.setAttribute("role", "status");
  field.input.value = view.yours;
  box.append(verbButtons(parent, view, field.input, judge), field.label, verdict, why.label);
  parent.append(box);

  function judge() {
    const text = cleaned(field.input.value);
    const wrong = text ? fault(view, text, others) : "";
    const { both, thing } = alike(text, others);
    why.label.hidden = Boolean(wrong) || both === null;
    let said = wrong;
    if (!wrong && both !== null) said = `“${both}” has the same verb and thing. Write another task, or say why it differs.`;
    else if (!wrong && thing !== null) said = `“${thing}” handles the same thing: another one would test more.`;
    if (verdict.textContent !== said) verdict.textContent = said;
    field.input.setAttribute("aria-invalid", String(Boolean(wrong)));
    tools.changed();
  }
  for (const one of [field, why]) one.input.addEventListener("input", judge);
  judge();

  return {
    field: field.input,
    enable(on) {
      box.disabled = !on;
      tools.changed();
    },
    value() {
      const [text, reason] = [cleaned(field.input.value), why.label.hidden ? "" : why.input.value.trim()];
      if (!text || fault(view, text, others) || (!why.label.hidden && !reason)) return null;
      return { task: text, reason };
    },
  };
}

function verbButtons(parent, view, input, judge) {
  const box = element("div", "verbs");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Begin with a verb");
  view.verbs.forEach((verb, index) => {
    const key = String((index + 1) % 10);
    const button = element("button", "verb", verb);
    button.type = "button";
    button.setAttribute("aria-keyshortcuts", key);
    button.append(element("kbd", "", key));
    button.addEventListener("click", () => begin(verb));
    box.append(button);
  });
  function begin(verb) {
    const words = input.value.trim().split(/\s+/).filter(Boolean);
    const verbs = view.verbs.map((one) => one.toLowerCase());
    if (verbs.includes((words[0] ?? "").toLowerCase())) words.shift();
    input.value = `${[verb, ...words].join(" ")} `;
    input.focus();
    judge();
  }
  onKey(parent, (key) => {
    if (!/^[0-9]$/.test(key) || box.closest("fieldset").disabled) return false;
    begin(view.verbs[(Number(key) + 9) % 10]);
    return true;
  });
  return box;
}
