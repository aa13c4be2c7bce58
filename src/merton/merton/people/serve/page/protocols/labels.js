// Does this question need this capability.

import { choices, element, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  const { view } = slot;
  const roles = Object.keys(slot.media).sort();
  pictures(root, roles.map((role, place) => [slot.media[role], `Picture ${place + 1} of the question`]), tools);
  passage(root, "Situation", view.situation);
  passage(root, "Question", view.question);
  if (view.choices.length) {
    const list = element("ul", "answers");
    list.append(...view.choices.map((choice) => element("li", "", choice)));
    root.append(element("h2", "", "Choices"), list);
  }
  passage(root, view.title || "Capability", view.definition);
  const group = choices(
    root,
    "Does the question need this capability?",
    [["yes", "Yes", "Y"], ["no", "No", "N"]],
    `verdict-${slot.number}`,
    tools,
  );
  group.box.classList.add("in-a-row");
  return {
    read: () => (group.value() === null ? null : { verdict: group.value() }),
    focus: group.focus,
    keys: [["Y", "yes"], ["N", "no"]],
  };
}
