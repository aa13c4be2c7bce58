// Does this question need this capability. Where an agent suggests an answer, it is chosen already, and marked.

import { choices, element, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  const { view } = slot;
  const shown = Object.values(slot.media);
  pictures(root, shown.map((medium, place) => [medium, shown.length > 1 ? `Picture ${place + 1}` : "The picture"]), tools);
  const split = element("div", "split");
  const [asked, capability] = [element("div", "passages"), element("div", "passages")];
  split.append(asked, capability);
  root.append(split);
  passage(asked, "Situation", view.situation);
  passage(asked, "Question", view.question);
  if (view.choices.length) {
    const list = element("ul");
    list.append(...view.choices.map((choice) => element("li", "", choice)));
    passage(asked, "Choices", " ").querySelector("p").replaceWith(list);
  }
  passage(capability, `The capability: ${view.title}`, view.definition);
  const group = choices(
    root,
    "Does the question need this capability?",
    [["yes", "Yes", "y"], ["no", "No", "n"]],
    `verdict-${slot.number}`,
    tools,
  );
  if (view.suggestion) {
    const place = view.suggestion === "yes" ? 0 : 1;
    const label = group.box.querySelectorAll("label")[place];
    label.classList.add("suggested");
    label.querySelector("input").checked = true;
    const said = `A program suggests ${place ? "No" : "Yes"}, and may be wrong. Correct it, or save it as it is.`;
    group.box.after(element("p", "hint", said));
  }
  return {
    read: () => (group.value() === null ? null : { verdict: group.value() }),
    focus: group.focus,
    keys: [["y", "yes"], ["n", "no"]],
  };
}
