// Absolute category rating: one picture or video, five grades.

export function show(root, slot, tools) {
  const medium = slot.media.image;
  const stage = document.createElement("div");
  stage.className = "stage";
  root.append(stage);
  if (medium.kind === "reel") tools.player(stage, [medium]);
  else stage.append(tools.image(medium, "The picture to be judged"));

  const group = document.createElement("fieldset");
  group.className = "grades";
  const legend = document.createElement("legend");
  legend.textContent = slot.view.question;
  group.append(legend);
  const name = `grade-${slot.number}`;
  const inputs = new Map();
  for (const [grade, word] of slot.view.grades) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "radio";
    input.name = name;
    input.value = String(grade);
    input.addEventListener("change", () => tools.changed());
    const text = document.createElement("span");
    text.textContent = `${grade} ${word}`;
    label.append(input, text);
    group.append(label);
    inputs.set(grade, input);
  }
  root.append(group);

  root.addEventListener("keydown", (event) => {
    const input = inputs.get(Number(event.key));
    if (!input || event.ctrlKey || event.altKey || event.metaKey) return;
    input.checked = true;
    input.focus();
    tools.changed();
  });

  return {
    read() {
      for (const [grade, input] of inputs) if (input.checked) return { score: grade };
      return null;
    },
    focus() {
      const first = inputs.values().next().value;
      first.focus();
    },
    keys: [["1 … 5", "grade"], ["Enter", "save and go on"]],
  };
}
