// Absolute category rating: one picture or video, five grades.

import { choices, pictures } from "./parts.js";

export function show(root, slot, tools) {
  pictures(root, [[slot.media.image, "The picture to be judged"]], tools);
  const grades = slot.view.grades.map(([grade, word]) => [grade, word, String(grade)]);
  const group = choices(root, slot.view.question, grades, `grade-${slot.number}`, tools);
  return {
    read: () => (group.value() === null ? null : { score: group.value() }),
    focus: group.focus,
    keys: [["1 to 5", "the grade"]],
  };
}
