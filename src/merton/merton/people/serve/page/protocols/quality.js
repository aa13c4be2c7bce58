// Absolute category rating: one picture or video, five grades.

import { choices, element, pictures } from "./parts.js";

export function show(root, slot, tools) {
  pictures(root, [[slot.media.image, "The picture to be judged"]], tools);
  const grades = slot.view.grades.map(([grade, word]) => [grade, `${grade} ${word}`, String(grade)]);
  const group = choices(root, slot.view.question, grades, `grade-${slot.number}`, tools);
  group.box.classList.add("in-a-row");
  root.prepend(element("p", "hint", "Judge what you see as a whole."));
  return {
    read: () => (group.value() === null ? null : { score: group.value() }),
    focus: group.focus,
    keys: [["1 to 5", "the grade"]],
  };
}
