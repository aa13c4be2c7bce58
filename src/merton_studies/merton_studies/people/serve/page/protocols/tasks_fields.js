// Fields that the forms of writers and of the expert share.

import { element } from "./parts.js";

// The four tags as lists to choose from.
export function tagFields(parent, slot, tools) {
  const box = element("fieldset", "tags");
  box.append(element("legend", "", "The picture shows"));
  const fields = slot.view.choices.map(([name, values]) => {
    const label = element("label", "", name);
    const field = element("select");
    field.name = `${name}-${slot.number}`;
    field.append(new Option("choose", ""), ...values.map((value) => new Option(value.replaceAll("_", " "), value)));
    field.value = slot.view.tags?.[name] ?? "";
    field.addEventListener("change", () => tools.changed());
    label.append(field);
    box.append(label);
    return [name, field];
  });
  parent.append(box);
  return {
    value: () => (fields.every(([, field]) => field.value) ? Object.fromEntries(fields.map(([n, f]) => [n, f.value])) : null),
    firstOpen: () => fields.map(([, field]) => field).find((field) => !field.value),
  };
}

// A field of one line, with its label.
export function line(title, longest) {
  const label = element("label", "line", title);
  const input = element("input");
  input.type = "text";
  input.maxLength = longest;
  input.autocomplete = "off";
  label.append(input);
  return { label, input };
}
