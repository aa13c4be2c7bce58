// The expert's form: five tasks in order of difficulty, edited where they are unreasonable, and a decision.

import { choices, element, pictures } from "./parts.js";
import { line, tagFields } from "./tasks_fields.js";
import { cleaned, fault } from "./tasks_rules.js";

export function review(root, slot, tools) {
  const { view } = slot;
  root.append(element("h2", "", "Order the tasks by difficulty, correct them, and decide"));
  if (view.flag) root.append(element("p", "warning", `A subject says: ${view.flag}.`));
  const split = element("div", "split");
  const [left, right] = [element("div", "column"), element("div", "column")];
  split.append(left, right);
  root.append(split);
  pictures(left, [[slot.media.image, "The picture that the tasks are for"]], tools);
  const tags = tagFields(left, slot, tools);
  const ranking = rankingOf(right, slot, tools);
  const decision = choices(
    right,
    "Your decision",
    [["accept", "Accept", "a"], ["back", "Send back to the subjects", "b"], ["remove", "Remove the picture", "r"]],
    `decision-${slot.number}`,
    tools,
  );
  const why = line("Why (the subjects read it)", view.longest[1]);
  why.label.hidden = true;
  why.input.addEventListener("input", () => tools.changed());
  right.append(why.label);
  decision.onChange(() => {
    why.label.hidden = decision.value() === null || decision.value() === "accept";
    ranking.ask(decision.value() === "back");
    tools.changed();
  });

  return {
    read() {
      const reason = why.label.hidden ? "" : why.input.value.trim();
      const answer = { decision: decision.value(), tags: tags.value(), tasks: [], places: [], reason };
      if (answer.decision === "accept") {
        answer.tasks = ranking.tasks();
        return answer.tags && answer.tasks ? answer : null;
      }
      if (answer.decision === "back") answer.places = ranking.again();
      if (answer.decision === "back" && !answer.places.length && !ranking.missing) return null;
      return answer.decision && reason ? answer : null;
    },
    focus: () => ranking.focus(),
    keys: [
      ["↑ ↓", "on a number: moves its task"],
      [`1 to ${view.of}`, "on a number: moves its task there"],
      ["a", "accept"],
      ["b", "send back"],
      ["r", "remove the picture"],
    ],
  };
}

function rankingOf(parent, slot, tools) {
  const { view } = slot;
  const title = element("h3", "", "The easiest first");
  const list = element("ol", "ranking");
  const spoken = element("p", "unseen");
  const wrong = element("p", "hint");
  spoken.setAttribute("role", "status");
  parent.append(title, list, wrong, spoken);
  const missing = view.of - view.tasks.length;
  const rows = view.tasks.map((task) => row(view, task));
  for (let count = 0; count < missing; count += 1) rows.push(row(view, { place: null, text: "", reason: "" }));
  list.append(...rows.map((one) => one.entry));
  for (const one of rows) {
    one.up.addEventListener("click", () => move(one, rows.indexOf(one) - 1, one.up));
    one.down.addEventListener("click", () => move(one, rows.indexOf(one) + 1, one.down));
    one.field.addEventListener("input", judge);
    one.again.addEventListener("change", () => tools.changed());
    one.handle.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      const to = step ? rows.indexOf(one) + step : Number(event.key) - 1;
      if (!(to >= 0 && to < rows.length) && !step) return;
      event.preventDefault();
      event.stopPropagation();
      move(one, to, one.handle);
    });
    draggable(one, rows, move);
  }

  function move(one, to, keep) {
    const place = Math.max(0, Math.min(rows.length - 1, to));
    rows.splice(rows.indexOf(one), 1);
    rows.splice(place, 0, one);
    list.insertBefore(one.entry, rows[place + 1]?.entry ?? null);
    keep?.focus(); // an element that is moved loses it
    spoken.textContent = `Now number ${place + 1}: ${one.field.value}`;
    judge();
  }

  function judge() {
    const texts = rows.map((one) => cleaned(one.field.value));
    let first = "";
    rows.forEach((one, index) => {
      const found = fault(view, texts[index], texts.slice(0, index));
      one.named(index, rows.length);
      one.field.setAttribute("aria-invalid", String(Boolean(found)));
      if (found && !first) first = `Task ${index + 1}: ${found}`;
    });
    if (wrong.textContent !== first) wrong.textContent = first;
    tools.changed();
    return first ? null : rows.map((one, index) => ({ text: texts[index], place: one.place }));
  }

  judge();
  return {
    missing,
    tasks: () => (wrong.textContent ? null : rows.map((one) => ({ text: cleaned(one.field.value), place: one.place }))),
    again: () => rows.filter((one) => one.again.checked).map((one) => one.place),
    ask(on) {
      for (const one of rows) one.againLabel.hidden = !on || one.place === null;
    },
    focus: () => rows[0].handle.focus(),
  };
}

function row(view, task) {
  const [entry, handle] = [element("li"), element("button", "handle")];
  const [up, down] = [element("button", "", "▲"), element("button", "", "▼")];
  for (const button of [handle, up, down]) button.type = "button";
  const field = element("textarea"); // as high as its text needs
  field.rows = 1;
  field.maxLength = view.longest[0];
  field.value = task.text;
  const about = element("p", "hint");
  const origin = task.place === null ? "added by you" : `written as number ${task.place + 1}`;
  const reason = task.reason ? `; the writer's reason: ${task.reason}` : "";
  const [againLabel, again] = [element("label", "again", "write it again"), element("input")];
  again.type = "checkbox";
  againLabel.prepend(again);
  againLabel.hidden = true;
  const moves = element("div", "moves");
  moves.append(up, down);
  const body = element("div", "task");
  body.append(field, about, againLabel);
  entry.append(handle, body, moves);
  return {
    place: task.place, entry, handle, up, down, field, again, againLabel,
    named(index, count) {
      handle.textContent = String(index + 1);
      handle.setAttribute("aria-label", `Task ${index + 1} of ${count}; arrow keys or a digit move it`);
      field.setAttribute("aria-label", `Text of task ${index + 1}`);
      again.setAttribute("aria-label", `Task ${index + 1}: write it again`);
      up.setAttribute("aria-label", `Task ${index + 1}: easier`);
      down.setAttribute("aria-label", `Task ${index + 1}: harder`);
      [up.disabled, down.disabled] = [index === 0, index === count - 1];
      const edited = task.place !== null && cleaned(field.value) !== task.text;
      about.textContent = `${origin}${edited ? `, as “${task.text}”` : ""}${reason}`;
    },
  };
}

// Dragging by the number, with mouse, pen or finger.
function draggable(one, rows, move) {
  one.handle.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    one.handle.setPointerCapture(event.pointerId);
    one.entry.classList.add("dragged");
  });
  one.handle.addEventListener("pointermove", (event) => {
    if (!one.handle.hasPointerCapture(event.pointerId)) return;
    const at = rows.indexOf(one);
    const beyond = rows.findIndex((other, index) => {
      const { top, height } = other.entry.getBoundingClientRect();
      const middle = top + height / 2;
      return (index < at && event.clientY < middle) || (index > at && event.clientY > middle);
    });
    if (beyond < 0) return;
    move(one, beyond, one.handle);
    one.handle.setPointerCapture(event.pointerId); // an element that is moved loses it
  });
  for (const end of ["pointerup", "pointercancel"]) {
    one.handle.addEventListener(end, () => one.entry.classList.remove("dragged"));
  }
}
