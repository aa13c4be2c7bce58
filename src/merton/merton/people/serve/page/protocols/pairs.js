// Which of two is better. The page knows a left and a right one; which contender is where, the server knows.

import { choices, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  passage(root, "Instruction", slot.view.instruction);
  pictures(root, [[slot.media.a, "The left one"], [slot.media.b, "The right one"]], tools);
  const group = choices(
    root,
    slot.view.question,
    [["left", "Left", "1"], ["right", "Right", "2"], ["tie", "A tie", "3"], ["both_bad", "Both bad", "4"]],
    `choice-${slot.number}`,
    tools,
  );
  group.box.classList.add("in-a-row");
  return {
    read: () => (group.value() === null ? null : { choice: group.value() }),
    focus: group.focus,
    keys: [["1", "left"], ["2", "right"], ["3", "a tie"], ["4", "both bad"]],
  };
}
