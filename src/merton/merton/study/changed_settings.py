"""The settings in which two runs differ: keys of the experiment, models of the agents, versions, the arm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from merton.pages.words import flat
from merton.results import trial_files
from merton.results.recorded_world import in_brief
from merton.results.records import AgentRecord, ExperimentRecord
from merton.results.store import ResultStore
from merton.results.text import MISSING, one_line
from merton.study.compared import AgentPair

NO_SETTINGS = frozenset(
    [
        "id",
        "created",
        "cores",
        "finished",
        "wall_s",
        "experiment_sha256",
        "design",
        "blind_agents",
        "reference_runs_added",
        "changes",
        "source",
        "kind",
        "verdict",
        "models",
        "tasks",
        "design_sha256",
        "latency",
        "episodes",
        "pairs",
        "successes",
        "decision",
        "scenes_that_differ_between_agents",
    ]
)
"""Entries of run.json that are no settings: names, times, results, and those that the experiment itself has."""
MODELS = "models"
"""Entry of run.json with the catalogue entries of the models; two runs are compared by those that both have."""
LISTS = ("tasks", "distortions")
"""Keys of the experiment's file that stand for themselves; all others with their defaults are in run.json's design."""


@dataclass(frozen=True)
class Settings:
    """The settings of one side.

    Attributes:
        experiment: key of the experiment to its value; nested keys are joined by " · ".
        agents: id to the models, with their versions where they are known.
        system: versions, the arm and the machine, by name.
        is_partial: of a record without a run's folder, which does not say most settings.
    """

    experiment: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    system: Mapping[str, str] = field(default_factory=dict)
    is_partial: bool = False


@dataclass(frozen=True)
class Change:
    """A setting that differs, in words; a dash for a side that does not say it."""

    name: str
    first: str
    second: str


def settings(store: ResultStore, run: Path | None) -> Settings:
    """The settings of a record, with those of the run's folder if it is one; needs no catalogue of models."""
    named = {about.id: _version(about) for about in store.agents()}
    facts = trial_files.json_object(run / "run.json") if run else None
    if run is None or facts is None:
        recorded = _recorded(store.experiment_records())
        merton = {"merton": recorded.pop("merton_version")} if "merton_version" in recorded else {}
        return Settings(recorded, named, merton, is_partial=True)
    of_episodes = trial_files.is_of_episodes(facts)
    spec = _experiment(run / (trial_files.DESIGN_FILE if of_episodes else "experiment.yaml"))
    agents = _models(spec) | {agent: text for agent, text in named.items() if text}
    design = facts.get("design")
    own = {"name": spec.get("name")} | {key: spec.get(key) or () for key in LISTS}
    own |= design if isinstance(design, Mapping) else {}
    if of_episodes:  # the program decides tasks and scenes
        own = {key: value for key, value in own.items() if key != "tasks"} | {"source": facts.get("source")}
    system = {key: value for key, value in in_brief(facts).items() if key not in NO_SETTINGS and key != "seed"}
    system |= {MODELS: _entries(facts.get(MODELS))}
    return Settings(_flat(own | {"seed": facts.get("seed")}), agents, _flat(system))


def changes(first: Settings, second: Settings, pairs: Iterable[AgentPair]) -> list[Change]:
    """What differs, agents first, then the experiment, then the system; of agents those that are compared.

    Beside a record without a run's folder only what both say counts.
    """
    found = []
    for pair in pairs:
        models = first.agents.get(pair.first, ""), second.agents.get(pair.second, "")
        if models[0] != models[1]:
            found.append(Change(f"agent {pair.name}", models[0] or MISSING, models[1] or MISSING))
    is_partial = first.is_partial or second.is_partial
    for one, other in ((first.experiment, second.experiment), (first.system, second.system)):
        known = [
            name
            for name in dict.fromkeys((*one, *other))
            if (name in one and name in other) or not (is_partial or name.startswith(MODELS))
        ]
        texts = {name: (one.get(name, MISSING), other.get(name, MISSING)) for name in known}
        found += [
            Change(name, *(_apart(*both) if name in LISTS else both))
            for name, both in texts.items()
            if both[0] != both[1]
        ]
    return found


def _entries(models: Any) -> dict[str, Any]:
    """The settings of a run's models by kind and name, from run.json, without the place of their catalogue."""
    kinds = models if isinstance(models, Mapping) else {}
    return {
        kind: {name: about.get("entry") for name, about in named.items() if isinstance(about, Mapping)}
        for kind, named in kinds.items()
        if isinstance(named, Mapping)
    }


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two lists without the members that both have, whose number stands behind them."""
    parts = one.split(", "), other.split(", ")
    shared = [part for part in parts[0] if part in parts[1]]
    if not shared:
        return one or "none", other or "none"
    left = [", ".join(part for part in own if part not in shared) or "none" for own in parts]
    return f"{left[0]} (and {len(shared)} in both)", f"{left[1]} (and {len(shared)} in both)"


def _flat(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: one_line(text, 400) for name, text in flat(values)}


def _version(about: AgentRecord) -> str:
    parts = (about.version, about.weights_sha256 and f"weights {about.weights_sha256[:12]}")
    return ", ".join(part for part in parts if part)


def _recorded(experiments: Sequence[ExperimentRecord]) -> dict[str, str]:
    """What a record tells of its experiments; of several, all values of each."""
    found = {}
    for name in ("name", "seed", "merton_version"):
        values = sorted({str(own) for item in experiments if (own := getattr(item, name)) is not None})
        if values:
            found[name] = ", ".join(values)
    return found


def _experiment(file: Path) -> dict[str, Any]:
    """The keys of an experiment's file as they stand there: names of models need not be known here."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        content = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _models(spec: Mapping[str, Any]) -> dict[str, str]:
    """Agent to its models, by the experiment's file."""
    agents = spec.get("agents")
    known = [agent for agent in agents if isinstance(agent, dict)] if isinstance(agents, list) else []
    return {str(agent.get("id")): f"{agent.get('vlm', 'describe')} + {agent.get('vla')}" for agent in known}
