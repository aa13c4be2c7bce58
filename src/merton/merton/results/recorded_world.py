"""The world of a run as its run.json says it, read without that world, and whether two runs have the same one.

A world that is not the embedded cell has an entry `world` in run.json: `name`, `description` (a
`merton.worlds.description.WorldDescription`) and `entry` of the catalogue.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from merton.results.records import ExperimentRecord
from merton.results.text import one_line
from merton.results.trial_files import is_of_episodes

EMBEDDED: Final = "ur5"
"""Merton's own cell: the world of a run whose run.json names none."""
SIMULATORS: Mapping[str, str] = {"mujoco": "it alone moved published success rates of LIBERO by seven points"}
"""Package to what another version of it has done; published: SimVLA's issue 14, MuJoCo 3.1 against 3.9."""
_LENGTH = 60
_LONGEST_VERSION = 400
"""Beyond which two texts of a version are not told apart; a renderer's has its driver's version at its end."""


@dataclass(frozen=True)
class RecordedWorld:
    """The world of a run.

    Attributes:
        name: of the catalogue, such as "libero"; `EMBEDDED` for the UR5 cell.
        versions: package, "renderer" or "assets" to version or hash; of the embedded cell that of its simulator.
        frame: the frame of the points of a path, and their unit, in words; "" if there are none.
        distorted_at: the point of the preprocessing at which a picture is distorted, in one sentence.
        form: of its actions, as in `merton.world.action_space.ActionSpace`.
        columns: of a row of them, such as "x [px]".
    """

    name: str
    versions: Mapping[str, str] = field(default_factory=dict)
    frame: str = ""
    distorted_at: str = ""
    form: str = "tool_deltas"
    columns: tuple[str, ...] = ()

    @property
    def gives_rows(self) -> bool:
        """Whether its actions are rows of its own, not deltas of a tool."""
        return self.form != "tool_deltas"

    @property
    def unit(self) -> str:
        """The unit of the points of a path, which stands in brackets at the end of `frame`; "" without one."""
        found = re.search(r"\[([^\[\]]{1,12})\]$", self.frame)
        return found[1] if found else ""

    @property
    def sentence(self) -> str:
        """The world with its versions, for the head of a page."""
        versions = ", ".join(f"{name} {one_line(version, _LENGTH)}" for name, version in self.versions.items())
        where = f" Pictures are distorted at this point: {self.distorted_at.rstrip('.')}." if self.distorted_at else ""
        return f"The trials were made in {self.shown}{f' ({versions})' if versions else ''}.{where}"

    @property
    def is_embedded(self) -> bool:
        """Whether it is the UR5 cell of this package."""
        return self.name == EMBEDDED

    @property
    def shown(self) -> str:
        """Its name in a sentence."""
        return "Merton's own cell" if self.is_embedded else f"the world {one_line(self.name, _LENGTH)}"


def world_of(about: Mapping[str, Any]) -> RecordedWorld | None:
    """The world that a run.json names; None of the embedded cell, of another program's episodes, and without an entry.

    Nothing in the file is trusted: an entry that is none counts as a world without versions and frame.
    """
    entry = about.get("world")
    if entry is None:
        return None
    entry = entry if isinstance(entry, Mapping) else {"name": entry}
    description = _mapping(entry.get("description"))
    frame, where, action = (
        description.get("frame"),
        description.get("distorted_at"),
        _mapping(description.get("action")),
    )
    columns = action.get("columns")
    return RecordedWorld(
        one_line(entry.get("name") or "unnamed", _LENGTH),
        _texts(description.get("versions")),
        one_line(frame, _LENGTH) if isinstance(frame, str) else "",
        one_line(where, 400) if isinstance(where, str) else "",
        one_line(action.get("form") or "tool_deltas", _LENGTH),
        tuple(
            f"{one_line(column.get('name') or '?', 40)} [{one_line(column.get('unit') or '1', 12)}]"
            for column in (columns if isinstance(columns, list) else ())
            if isinstance(column, Mapping)
        ),
    )


def in_brief(about: Mapping[str, Any]) -> dict[str, Any]:
    """A run.json as settings are shown: of its world's description without cameras, tasks and columns of actions."""
    entry = about.get("world")
    if not isinstance(entry, Mapping) or not isinstance(entry.get("description"), Mapping):
        return dict(about)
    long = ("cameras", "tasks", "action", "abilities")
    brief = {name: value for name, value in entry["description"].items() if name not in long}
    return {**about, "world": {**entry, "description": brief}}


def place_of(about: Mapping[str, Any]) -> RecordedWorld | None:
    """As `world_of`, with the embedded cell, whose version is its simulator's; None of another program's episodes.

    A run.json that says nothing, or none at all (an empty mapping), gives None, too.
    """
    if (world := world_of(about)) is not None:
        return world
    if is_of_episodes(about) or not about:
        return None
    packages = _texts(about.get("packages"))
    return RecordedWorld(EMBEDDED, {name: packages[name] for name in SIMULATORS if name in packages})


def world_of_experiment(experiment: ExperimentRecord) -> RecordedWorld | None:
    """The world of an experiment in a record; None if it names none."""
    if not experiment.world:
        return None
    try:
        versions = json.loads(experiment.world_versions or "{}")
    except (ValueError, RecursionError):
        versions = {}
    return RecordedWorld(one_line(experiment.world, _LENGTH), _texts(versions))


def pooled_sentences(experiments: Iterable[ExperimentRecord]) -> list[str]:
    """What must be said of experiments whose trials are rated together: several worlds, or versions of one."""
    by_name: dict[str, dict[str, RecordedWorld]] = {}
    for experiment in sorted(experiments):
        world = world_of_experiment(experiment) or RecordedWorld("")
        by_name.setdefault(world.name, {})[experiment.id] = world
    found = []
    if len(by_name) > 1:
        names = [f"{worlds[min(worlds)].shown} ({min(worlds)})" for name, worlds in sorted(by_name.items()) if name]
        others = " and elsewhere" if "" in by_name else ""
        found.append(
            f"The trials were made in {', '.join(names)}{others}: success in one world says little of another, so "
            "read the boards of each by themselves."
        )
    for worlds in by_name.values():
        first, *others_of_it = worlds
        for other in others_of_it:
            found += version_sentences(worlds[first], worlds[other], (first, other))
    return found


def version_sentences(
    first: RecordedWorld | None, second: RecordedWorld | None, names: tuple[str, str] = ("A", "B")
) -> list[str]:
    """A sentence for each version in which two runs of one world differ; empty if there is none, or of two worlds.

    A version that one of them does not say counts for nothing.

    Args:
        first, second: None if it is not known.
        names: of the two runs, for the text.
    """
    if first is None or second is None or first.name != second.name:
        return []
    found = []
    for package, one in first.versions.items():
        other = second.versions.get(package, one)
        if one != other:
            known = f": {why}, so" if (why := SIMULATORS.get(package)) else ", so"
            found.append(
                f"{first.shown[:1].upper()}{first.shown[1:]} ran with {package} {one} in "
                f"{names[0]} and {other} in {names[1]}{known} a difference between these runs may be the "
                "simulator's."
            )
    return found


def worlds_sentence(
    first: RecordedWorld | None, second: RecordedWorld | None, names: tuple[str, str] = ("A", "B")
) -> str:
    """The sentence on two runs of different worlds; empty for one world, and for one that is not known (None)."""
    if first is None or second is None or first.name == second.name:
        return ""
    return (
        f"{names[0]} ran in {first.shown} and {names[1]} in {second.shown}: tasks, scenes and physics differ as well "
        "as agents, so no test case is compared with itself, and a difference is not the agents' alone."
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(value: Any) -> dict[str, str]:
    return {one_line(name, _LENGTH): one_line(text, _LONGEST_VERSION) for name, text in _mapping(value).items()}
