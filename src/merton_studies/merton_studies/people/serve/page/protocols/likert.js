// Eight criteria from 1 to 5 for a plan, beside its video and instruction.

import { element, onKey, passage, pictures } from "./parts.js";

export function show(root, slot, tools) {
  const { view } = slot;
  const split = element("div", "split");
  const [seen, marked] = [element("div", "passages seen"), element("div", "criteria")];
  split.append(seen, marked);
  root.append(split);
  pictures(seen, [[slot.media.video, "The video"]], tools);
  passage(seen, "Instruction", view.instruction);
  passage(seen, "Plan", view.plan);
  const [worst, best] = [view.marks[0], view.marks[view.marks.length - 1]];
  marked.append(element("h2", "", "Mark the plan"));
  marked.append(element("p", "quiet", `From ${worst}, ${view.ends[0]}, to ${best}, ${view.ends[1]}.`));
  const rows = view.criteria.map(([name, title, question]) => row(marked, slot, name, title, question, tools));

  const current = () => {
    const focused = rows.findIndex((one) => one.box.contains(document.activeElement));
    const open = rows.findIndex((one) => one.value() === null);
    return focused >= 0 ? focused : Math.max(open, 0);
  };
  onKey(root, (key) => {
    if (!view.marks.includes(Number(key))) return false;
    const place = current();
    rows[place].choose(Number(key));
    rows[Math.min(place + 1, rows.length - 1)].focus();
    return true;
  });
  return {
    read() {
      const marks = rows.map((one) => [one.name, one.value()]);
      return marks.some(([, mark]) => mark === null) ? null : Object.fromEntries(marks);
    },
    focus: () => rows[0].focus({ preventScroll: true }),
    keys: [[`${worst} to ${best}`, "the mark of a row; the next row follows"], ["Tab", "the next row"]],
  };
}

function row(parent, slot, name, title, question, tools) {
  const box = element("fieldset", "criterion");
  const help = element("p", "rubric", question);
  help.id = `help-${slot.number}-${name}`;
  box.setAttribute("aria-describedby", help.id);
  const marks = element("div", "marks");
  const inputs = slot.view.marks.map((mark) => {
    const label = element("label", "choice");
    const input = element("input");
    input.type = "radio";
    input.name = `${name}-${slot.number}`;
    input.value = String(mark);
    input.addEventListener("change", () => tools.changed());
    label.append(input, element("span", "", String(mark)));
    marks.append(label);
    return input;
  });
  box.append(element("legend", "", title), help, marks);
  parent.append(box);
  return {
    name,
    box,
    value() {
      const chosen = inputs.find((input) => input.checked);
      return chosen ? Number(chosen.value) : null;
    },
    choose(mark) {
      inputs[slot.view.marks.indexOf(mark)].checked = true;
      tools.changed();
    },
    focus: (how) => (inputs.find((input) => input.checked) || inputs[0]).focus(how),
  };
}
