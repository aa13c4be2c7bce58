// A generated video beside the real one, from 0 to 3. What was seen suggests a score; the annotator decides, and chooses
// the language of the rubric, which the browser keeps.

import { choices, element, onKey, passage, pictures } from "./parts.js";

const OUTCOMES = [["same", "", "y"], ["other", "", "n"]];
const DEFECT_KEYS = { deformed: "d", implausible: "p", other_motion: "m", chaotic: "c" };
const KEPT = "merton-language";

export function show(root, slot, tools) {
  const { languages, instruction } = slot.view;
  const words = () => languages[language.value];
  const language = languageChoice(root, languages);
  passage(root, "The task", instruction);
  const split = element("div", "split");
  const [left, right] = [element("div", "column"), element("div", "column beside-videos")];
  split.append(left, right);
  root.append(split);
  pictures(left, [[slot.media.reference, words().reference], [slot.media.video, words().video]], tools);
  const outcome = choices(left, "", OUTCOMES, `outcome-${slot.number}`, tools);
  const defects = boxes(left, Object.keys(words().defects), tools);
  const numbers = words().scores.map((_, number) => number).reverse(); // the best first
  const score = choices(right, "", numbers.map((number) => [String(number), "", String(number)]), `score-${slot.number}`, tools);
  score.box.classList.add("scores");
  const labels = [...score.box.querySelectorAll("label")];
  const said = element("p", "hint");
  said.setAttribute("role", "status");
  right.append(said);

  function suggest() {
    const known = outcome.value() !== null;
    const number = known ? suggested(outcome.value() === "same", defects.value()) : null;
    labels.forEach((label, index) => label.classList.toggle("suggested", numbers[index] === number));
    const text = known ? words().suggested.replace("{}", number) : words().open;
    if (said.textContent !== text) said.textContent = text;
  }

  // Every text of the rubric in the language that is chosen; what was entered stays.
  function speak() {
    const now = words();
    split.lang = language.value;
    const captions = left.querySelectorAll("figcaption");
    [now.reference, now.video].forEach((text, index) => { if (captions[index]) captions[index].textContent = text; });
    texts(outcome.box, now.outcome, OUTCOMES.map(([name]) => now.outcomes[name]));
    texts(defects.box, now.wrong, Object.values(now.defects));
    texts(score.box, now.score, numbers.map((number) => `${number}: ${now.scores[number]}`));
    labels.forEach((label, index) => {
      label.querySelector("span").append(element("small", "", now.for_example.replace("{}", now.examples[numbers[index]])));
    });
    suggest();
  }
  outcome.onChange(suggest);
  defects.onChange(suggest);
  language.addEventListener("change", speak);
  speak();

  return {
    read() {
      if (outcome.value() === null || score.value() === null) return null;
      return { score: Number(score.value()), same_outcome: outcome.value() === "same", defects: defects.value() };
    },
    focus: () => (left.querySelector(".reel-controls button") ?? left.querySelector("input")).focus(), // watch first
    get keys() {
      const now = words();
      return [
        ["y, n", `${now.outcomes.same} / ${now.outcomes.other}`],
        ...Object.entries(now.defects).map(([name, text]) => [DEFECT_KEYS[name], text]),
        ["0 to 3", now.score],
      ];
    },
  };
}

// As merton/people/protocols/episodes.py: suggested.
export function suggested(same, defects) {
  if (same) return defects.length ? 2 : 3;
  return defects.includes("other_motion") || defects.includes("chaotic") ? 0 : 1;
}

// A select of the languages; the one that was chosen last comes first.
function languageChoice(parent, languages) {
  const line = element("label", "language");
  const select = element("select");
  for (const [code, { name }] of Object.entries(languages)) {
    const option = element("option", "", name);
    option.value = option.lang = code;
    select.append(option);
  }
  const kept = stored();
  select.value = kept in languages ? kept : Object.keys(languages)[0];
  select.addEventListener("change", () => store(select.value));
  line.append(element("span", "quiet", "Language"), select);
  parent.append(line);
  return select;
}

// A browser may refuse to keep anything: then the choice holds for the item.
function stored() {
  try {
    return localStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

function store(code) {
  try {
    localStorage.setItem(KEPT, code);
  } catch {
    // as said above
  }
}

// The question and the answers of a box in other words.
function texts(box, question, answers) {
  box.querySelector("legend").textContent = question;
  box.querySelectorAll("label span").forEach((span, index) => { span.textContent = answers[index]; });
}

// Any of several, as check boxes with keys.
function boxes(parent, names, tools) {
  const box = element("fieldset", "choices");
  box.append(element("legend"));
  const inputs = names.map((name) => {
    const label = element("label", "choice");
    const input = element("input");
    input.type = "checkbox";
    input.value = name;
    input.setAttribute("aria-keyshortcuts", DEFECT_KEYS[name]);
    input.addEventListener("change", () => tools.changed());
    label.append(input, element("span"), element("kbd", "", DEFECT_KEYS[name]));
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
    box,
    value: () => inputs.filter((input) => input.checked).map((input) => input.value),
    onChange: (act) => box.addEventListener("change", act),
  };
}
