// Whether a robot did its task.

import { choices, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  const { view } = slot;
  passage(root, "The task", view.instruction);
  pictures(root, [[slot.media.video, "The trial"]], tools);
  const options = view.verdicts.map(([name, word], index) => [name, word, String(index + 1)]);
  const verdict = choices(root, view.question, options, `verdict-${slot.number}`, tools);
  return {
    read: () => (verdict.value() === null ? null : { verdict: verdict.value() }),
    focus: verdict.focus,
    keys: options.map(([, word, key]) => [key, word]),
  };
}
