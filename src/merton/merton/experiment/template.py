"""A new experiment file: every key with a comment, the chosen ones set, the others at their default behind a `#`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from merton.config import validated
from merton.experiment.plan import AgentSpec, ExperimentSpec
from merton.experiment.reference import Key, keys

EXAMPLES = {"couple": "vlm -> vla", "distort.steps": "[0]"}
"""In place of a default that is nothing."""


def experiment_text(
    name: str,
    agents: Sequence[str],
    tasks: Sequence[str],
    distortions: Sequence[str],
    levels: Sequence[int] | str,
    scenes: int,
) -> str:
    """A commented experiment as YAML.

    Args:
        agents: each a VLA, which `describe` joins as VLM, or "vlm+vla".
        levels: whole levels, "one" or "staircase".

    Raises:
        InputError: a value that no experiment may have; the text names its key.
    """
    members = [agent_of(agent) for agent in agents]
    listed = levels if isinstance(levels, str) else tuple(levels)
    chosen: dict[str, Any] = {"name": name, "agents": tuple(members), "tasks": tuple(tasks)}
    chosen |= {"distortions": tuple(distortions), "levels": listed, "scenes": scenes}
    validated(ExperimentSpec, chosen, "the new experiment")
    lines = ["# An experiment: merton run FILE --dry-run says what it takes, docs/use/experiments.md more about keys."]
    for key in keys():
        if key.name.startswith("agents."):
            continue
        if "." in key.name:
            lines.append(f"#   {key.name.partition('.')[2]}: {_default(key)}   # {key.short}")
            continue
        lines += ["", f"# {key.short}"]
        if key.name == "agents":
            lines += [f"#   {part.name[7:]}: {part.short}" for part in keys() if part.name.startswith("agents.")]
            lines += ["agents:", *(f"  - {flow(member)}" for member in members)]
        elif key.name in chosen:
            lines.append(f"{key.name}: {flow(chosen[key.name])}")
        else:
            lines.append("# distort:" if key.name == "distort" else f"# {key.name}: {_default(key)}")
    return "\n".join(lines) + "\n"


def agent_of(name: str) -> dict[str, str]:
    """The agent of a VLA, which `describe` joins as VLM, or of "vlm+vla", as a value of the key `agents`."""
    vlm, plus, vla = name.rpartition("+")
    id = name.replace("+", "-").replace(".", "-")
    return {"id": id, "vlm": vlm if plus else str(AgentSpec.model_fields["vlm"].default), "vla": vla}


def _default(key: Key) -> str:
    """The default of a key as YAML, or an example where it is nothing."""
    if key.name in EXAMPLES:
        return EXAMPLES[key.name]
    outer, _, inner = key.name.partition(".")
    value = ExperimentSpec.model_fields[outer].get_default(call_default_factory=True)
    return flow(getattr(value, inner) if inner else value)


def flow(value: Any) -> str:
    """A value as YAML on one line, texts in quotes only where they are not plain words."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow, value))}]"
    plain = isinstance(value, str) and value.replace("-", "").replace("_", "").isalnum() and value[0].isalpha()
    return value if plain else json.dumps(value)
