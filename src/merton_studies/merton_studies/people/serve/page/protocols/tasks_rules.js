// The rules of merton/people/protocols/tasks_chain.py, so that the page says at once what the server would refuse.

const FILLERS = new Set(["up", "down", "open", "the", "a", "an", "and", "hold", "out", "away", "far", "again"]);
const PREPOSITIONS = new Set([
  "to", "on", "in", "into", "onto", "with", "of", "from", "at", "under", "over", "by", "near", "behind", "beside",
  "between", "above", "below", "inside", "around", "towards", "so", "until",
]);

// On one line, with single spaces, the first letter a capital.
export function cleaned(text) {
  const line = text.split(/\s+/).filter(Boolean).join(" ");
  return line.slice(0, 1).toUpperCase() + line.slice(1);
}

// Verb and thing of a task, as one text to compare.
export function handled(text) {
  const [verb = "", ...rest] = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const words = [];
  for (const word of rest) {
    if (PREPOSITIONS.has(word) && words.length) break;
    if (!FILLERS.has(word) && !PREPOSITIONS.has(word)) words.push(word);
  }
  return { verb, thing: words.join(" ") };
}

// What is wrong with a (cleaned) task among others, in a sentence; empty if nothing is.
export function fault(view, text, others) {
  const words = text.split(" ").filter(Boolean);
  const [fewest, most] = view.words;
  if (!view.verbs.includes(words[0])) return `A task must begin with one of ${view.verbs.join(", ")}.`;
  if (words.length < fewest || words.length > most) {
    return `A task must have ${fewest} to ${most} words; this one has ${words.length}.`;
  }
  if (others.some((other) => other.toLowerCase() === text.toLowerCase())) return "This task is there already.";
  return "";
}

// The first of other tasks with the same verb and thing, and the first with the same thing alone.
export function alike(text, others) {
  const own = handled(text);
  const known = others.map((other) => [other, handled(other)]).filter(([, one]) => own.thing && one.thing === own.thing);
  return {
    both: known.find(([, one]) => one.verb === own.verb)?.[0] ?? null,
    thing: known.find(([, one]) => one.verb !== own.verb)?.[0] ?? null,
  };
}
