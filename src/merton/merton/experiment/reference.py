"""The reference of the experiment file, from the models that check it: every key, its values, default and meaning."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from merton.config import described_pattern
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec

COSTS = {
    "agents": "each runs all trials",
    "tasks": "each multiplies the trials",
    "distortions": "each adds scenes x levels per task and agent",
    "levels": "each above 0, of every distortion",
    "scenes": "1 + distortions x levels each",
    "reference_scenes": "one trial each",
    "max_steps": "time, not trials",
}
"""Cost of a key in trials of an agent and task; a key that is not here costs none."""
_NAMED = {
    "vlm": "a name of `merton model list`",
    "vla": "a name of `merton model list`",
    "tasks": "list of [tasks](tasks.md)",
    "distortions": "list of names of `merton distort list`",
    "cameras": "list of `top`, `side`, `wrist`",
    "vlm_camera": "`top`, `side` or `wrist`",
    "sensor": "`ideal` or `d455`",
    "quality_metric": "a name of `merton.perception.quality.METRICS`",
    "agents": "list of `{id, vlm, vla}`",
    "levels": "list of 0 to 5, `one` or `staircase`",
    "distort": "`cameras`, `stages`, `steps`, `regions`",
}
"""Values that are names of other registries, or models of their own, in words."""
_EVERYTHING = {"cameras": "all", "steps": "all", "distort": "everything"}
"""Defaults that stand for all there is."""


@dataclass(frozen=True)
class Key:
    """A key of the experiment file.

    Attributes:
        name: such as "agents", or "agents.id" of a key in it.
        values: type, bounds and choices in words, Markdown.
        default: in words; "needed" if there is none.
        cost: in trials, in words; empty if it costs none.
        meaning: of its first sentence the point is kept.
    """

    name: str
    values: str
    default: str
    cost: str
    meaning: str

    @property
    def short(self) -> str:
        """The first sentence of its meaning, for a comment."""
        return self.meaning.split(". ")[0].rstrip(".").replace("`", "")


def keys() -> list[Key]:
    """Every key, in the order of the file; those of an agent and of `distort` after theirs."""
    inner: dict[str, type[BaseModel]] = {"agents": AgentSpec, "distort": DistortedPart}
    found = []
    for name in ExperimentSpec.model_fields:
        found.append(_key(ExperimentSpec, name))
        if name in inner:
            found += [_key(inner[name], part, f"{name}.") for part in inner[name].model_fields]
    return found


def listing() -> str:
    """The keys as a Markdown list: meaning, values, default, and where there is one the cost in trials."""
    lines = []
    for key in keys():
        default = "needed" if key.default == "needed" else f"default {key.default}"
        cost = f"; cost: {key.cost}" if key.cost else ""
        lines.append(f"- `{key.name}`: {key.meaning} *{key.values}; {default}{cost}.*")
    return "\n".join(lines)


def _key(model: type[BaseModel], name: str, prefix: str = "") -> Key:
    field = model.model_fields[name]
    default = "needed" if field.is_required() else _default(name, field.get_default(call_default_factory=True))
    schema = model.model_json_schema()["properties"][name]
    cost = "" if prefix else COSTS.get(name, "")
    return Key(f"{prefix}{name}", _NAMED.get(name) or _values(schema), default, cost, _meanings(model)[name])


def _default(name: str, value: Any) -> str:
    if name in _EVERYTHING:
        return _EVERYTHING[name]
    if value is None or value in ("", ()):
        return "none"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else f"`{value}`"


def _values(schema: dict[str, Any]) -> str:
    """Type, bounds and choices of a JSON schema in words."""
    if "anyOf" in schema:
        return _values(next(part for part in schema["anyOf"] if part.get("type") != "null"))
    if "$ref" in schema or "allOf" in schema:
        return "a mapping"
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{choice}`" for choice in choices)
    if schema.get("type") == "array":
        return f"list of {_values(schema['items']).replace('a whole number', 'whole numbers')}"
    if schema.get("type") == "string":
        return described_pattern(schema["pattern"]) if "pattern" in schema else "a text"
    words = "a whole number" if schema.get("type") == "integer" else "a number"
    low = schema.get("minimum")
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if high is None:
        return f"{words} from {low}"
    below = "below 2^63" if high == 2**63 else f"to {high:g}" if high < 100_000 else f"to {high:,}"
    return f"{words}, {low} {below}" if "to" in below else f"{words} from {low}, {below}"


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """The entries under `Attributes:` in the docstring of a model, each on one line."""
    section = (inspect.getdoc(model) or "").partition("Attributes:\n")[2]
    entries = re.split(r"^    (?=\w+: )", section, flags=re.MULTILINE)
    pairs = (" ".join(entry.split()).partition(": ") for entry in entries if entry.strip())
    return {name: meaning for name, _, meaning in pairs}
