// A generated video beside the real one, from 0 to 3. What was seen suggests a score; the annotator decides.

import { choices, element, onKey, passage, pictures } from "./parts.js";

const OUTCOMES = [["same", "The same", "y"], ["other", "Another", "n"]];
const DEFECT_KEYS = { deformed: "d", implausible: "p", other_motion: "m", chaotic: "c" };

export function show(root, slot, tools) {
  const { view } = slot;
  passage(root, "The task", view.instruction);
  const split = element("div", "split");
  const [left, right] = [element("div", "column"), element("div", "column beside-videos")];
  split.append(left, right);
  root.append(split);
  pictures(left, [[slot.media.reference, "Reference: the real robot"], [slot.media.video, "To be judged"]], tools);
  const outcome = choices(left, "How does it end, compared with the reference?", OUTCOMES, `outcome-${slot.number}`, tools);
  const defects = boxes(left, "What is wrong on the way? Leave open what is not", view.defects, tools);
  const score = choices(
    right,
    "Your score",
    view.rubric.map(([number, meaning]) => [String(number), `${number}: ${meaning}`, String(number)]),
    `score-${slot.number}`,
    tools,
  );
  score.box.classList.add("scores");
  const labels = [...score.box.querySelectorAll("label")];
  labels.forEach((label, index) => label.querySelector("span").append(element("small", "", `For example: ${view.rubric[index][2]}.`)));
  const said = element("p", "hint");
  said.setAttribute("role", "status");
  right.append(said);

  function suggest() {
    const known = outcome.value() !== null;
    const number = known ? suggested(outcome.value() === "same", defects.value()) : null;
    labels.forEach((label, index) => label.classList.toggle("suggested", view.rubric[index][0] === number));
    const text = known ? `What you saw suggests ${number}. You decide.` : "Answer the questions for a suggestion. You decide.";
    if (said.textContent !== text) said.textContent = text;
  }
  outcome.onChange(suggest);
  defects.onChange(suggest);
  suggest();

  return {
    read() {
      if (outcome.value() === null || score.value() === null) return null;
      return { score: Number(score.value()), same_outcome: outcome.value() === "same", defects: defects.value() };
    },
    focus: () => (left.querySelector(".reel-controls button") ?? left.querySelector("input")).focus(), // watch first
    keys: [
      ["y, n", "it ends the same way, or not"],
      ...view.defects.map(([name, words]) => [DEFECT_KEYS[name], words]),
      ["0 to 3", "score"],
    ],
  };
}

// As merton/people/protocols/episodes.py: suggested.
export function suggested(same, defects) {
  if (defects.includes("chaotic")) return 0;
  if (!same) return defects.includes("other_motion") ? 0 : 1;
  return defects.length ? 2 : 3;
}

// Any of several, as check boxes with keys.
function boxes(parent, question, options, tools) {
  const box = element("fieldset", "choices");
  box.append(element("legend", "", question));
  const inputs = options.map(([name, words]) => {
    const label = element("label", "choice");
    const input = element("input");
    input.type = "checkbox";
    input.value = name;
    input.setAttribute("aria-keyshortcuts", DEFECT_KEYS[name]);
    input.addEventListener("change", () => tools.changed());
    label.append(input, element("span", "", words), element("kbd", "", DEFECT_KEYS[name]));
    box.append(label);
    return input;
  });
  parent.append(box);
  onKey(parent, (key) => {
    const input = inputs.find((one) => DEFECT_KEYS[one.value] === key);
    if (!input) return false;
    input.click(); // tells of the change as a press does
    input.focus();
    return true;
  });
  return {
    value: () => inputs.filter((input) => input.checked).map((input) => input.value),
    onChange: (act) => box.addEventListener("change", act),
  };
}
