// Which of two is better. The page calls them A and B by their places; which contender is where, the server knows.

import { choices, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  passage(root, "The task", slot.view.task);
  pictures(root, [[slot.media.a, "A"], [slot.media.b, "B"]], tools);
  const group = choices(
    root,
    slot.view.question,
    [["left", "A", "1"], ["right", "B", "2"], ["tie", "A tie", "3"], ["both_bad", "Both bad", "4"]],
    `choice-${slot.number}`,
    tools,
  );
  return {
    read: () => (group.value() === null ? null : { choice: group.value() }),
    focus: group.focus,
    keys: [["1", "A"], ["2", "B"], ["3", "a tie"], ["4", "both bad"]],
  };
}
