"""An experiment file and what a command line changes in it: one key, several, or several values of one, a sweep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from merton.config import plain, read_text, tree_of, validated
from merton.errors import FileError, InputError, near_miss
from merton.experiment.plan import ExperimentSpec
from merton.experiment.recorded import Known, known_of_run, models_named
from merton.experiment.run_names import RUNS, is_episodes
from merton.experiment.template import agent_of, flow
from merton.files import file_sha256, resource

SWEEP = "sweep"
"""The key of a file that maps keys of the experiment to lists of values."""

Settings = Sequence[tuple[str, Any]]
"""(key, value) in the order of the command line; a key that comes again is swept."""


@dataclass(frozen=True)
class Experiment:
    """An experiment as it is to be run.

    Attributes:
        file: where it comes from.
        text: of the run's experiment.yaml: the file as it is if nothing is changed.
        spec: what the text says.
        changes: key to value, such as {"agents.0.vla": "glance"}.
        swept: those of `changes` that have another value in other runs of the same sweep.
    """

    file: Path
    text: str
    spec: ExperimentSpec
    changes: Mapping[str, Any] = field(default_factory=dict)
    swept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> dict[str, Any]:
        """The entries of run.json about it: `source`, `file` and `sha256`, and `changes` if there are some."""
        source = {"file": str(self.file.absolute()), "sha256": file_sha256(self.file)}
        return {"source": source, **({"changes": dict(self.changes)} if self.changes else {})}

    @property
    def label(self) -> str:
        """The swept values as part of a run's name, such as "seed-1-levels-0-5"; empty if it is not of a sweep."""
        words = [f"{key} {_words(value)}" for key, value in self.swept.items()]
        return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")

    @property
    def title(self) -> str:
        """The swept values for people, such as "seed=1, levels=[0, 5]"."""
        return ", ".join(f"{key}={flow(value)}" for key, value in self.swept.items())


def shipped() -> dict[str, Path]:
    """Name to file of the experiments that come with Merton, sorted."""
    files = sorted(resource("merton_bringup", "config/experiments").glob("*.yaml"))
    return {file.stem: file for file in files}


def experiment_file(name: str | Path) -> Path:
    """The file that a user named: one that is there, else a shipped experiment, with or without ".yaml".

    Raises:
        InputError: it is neither; the text names the shipped one that is most like it, and `merton new`.
    """
    path, own = Path(name), shipped()
    if is_episodes(path) or is_episodes(RUNS / path):
        raise InputError(
            f"{name} is a run of episodes, which has no trials that Merton could carry out: the program that began it "
            "goes on with it"
        )
    if path.exists():
        return path
    if path.parent == Path() and path.name.removesuffix(".yaml") in own:
        return own[path.name.removesuffix(".yaml")]
    near = near_miss(path.name.removesuffix(".yaml"), own)
    hint = f"did you mean {near!r}? " if near else ""
    new = path if path.suffix else path.with_suffix(".yaml")
    raise InputError(
        f"there is no experiment {str(name)!r}; {hint}`merton new -o {new}` writes it, and these come with Merton: "
        f"{', '.join(own)}"
    )


def experiments(file: Path, settings: Settings = ()) -> list[Experiment]:
    """An experiment file with the changes of a command line: one experiment, or all of a sweep in order.

    A sweep is the product of all keys that have several values, in the file's `sweep` or in `settings`, the last key
    changing fastest. A setting replaces the values that the file's sweep has of its key. The experiment.yaml of a run
    is read with the models that the run recorded.

    Raises:
        InputError: a file, key or value that no experiment may have; the text names it.
    """
    known = known_of_run(file.parent) if file.name == "experiment.yaml" else {}
    text = read_text(file)
    tree = _tree(text, file)
    values = _swept_in_file(tree, file)
    for key in dict.fromkeys(key for key, _ in settings):
        values[key] = [value for other, value in settings if other == key]
    several = [key for key, listed in values.items() if len(listed) > 1]
    made = []
    for chosen in product(*values.values()):
        changes = dict(zip(values, chosen, strict=True))
        made.append(_changed(file, text, changes, {key: changes[key] for key in several}, known))
    return made


def one_experiment(file: Path, settings: Settings = (), user: str = "this command") -> Experiment:
    """As `experiments`, for a command, `user`, that takes one; raises InputError for a sweep, too."""
    first, *others = experiments(file, settings)
    if others:
        raise InputError(
            f"{user} takes one experiment, and {file} with these settings is a sweep of {len(others) + 1}: give "
            f"each of {', '.join(first.swept)} one value by --set"
        )
    return first


def value_of(text: str, key: str) -> Any:
    """The value of a key in a command line: YAML, such as 3, [0, 5], top or {cameras: [top]}.

    Raises:
        InputError: it is no YAML.
    """
    return plain(tree_of(text, f"--set {key}"))


def agents_named(file: Path, names: Iterable[str]) -> tuple[dict[str, str], ...]:
    """The agents of a command line as values of the key `agents`: those of a file by id, and models of the catalogue.

    Args:
        file: an experiment.
        names: ids of its agents, VLAs, or "vlm+vla".

    Raises:
        UnknownNameError: a name is none of these.
    """
    listed = plain(_tree(read_text(file), file)).get("agents", ())
    by_id = {str(agent["id"]): agent for agent in listed if isinstance(agent, dict) and "id" in agent}
    return tuple(by_id[name] if name in by_id else _of_catalogue(name, by_id) for name in names)


def _of_catalogue(name: str, ids: Iterable[str]) -> dict[str, str]:
    models_named(name, ids)
    return agent_of(name)


def _tree(text: str, file: Path) -> CommentedMap:
    tree = tree_of(text, str(file))
    if not isinstance(tree, CommentedMap):
        raise FileError(f"{file}: must be a mapping with the keys {', '.join(ExperimentSpec.model_fields)}")
    return tree


def _swept_in_file(tree: CommentedMap, file: Path) -> dict[str, list[Any]]:
    """Key to values of the file's `sweep`."""
    sweep = plain(tree.get(SWEEP, CommentedMap()))
    if not isinstance(sweep, dict):
        raise FileError(f"{file}: {SWEEP}: must be a mapping of keys to lists of values")
    for key, listed in sweep.items():
        if not isinstance(listed, tuple) or not listed:
            raise FileError(f"{file}: {SWEEP}.{key}: must be a list of values of the key, such as [1, 2]")
    return {key: list(listed) for key, listed in sweep.items()}


def _changed(file: Path, text: str, changes: Mapping[str, Any], swept: Mapping[str, Any], known: Known) -> Experiment:
    tree = _tree(text, file)
    if not changes and SWEEP not in tree:
        return Experiment(file, text, validated(ExperimentSpec, plain(tree), str(file), tree, known))
    tree.pop(SWEEP, None)
    for key, value in changes.items():
        _put(tree, key, value)
    words = ", ".join(f"{key}={flow(value)}" for key, value in changes.items())
    spec = validated(ExperimentSpec, plain(tree), f"{file} with {words}" if words else str(file), None, known)
    written = StringIO()
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(tree, written)
    return Experiment(file, written.getvalue(), spec, changes, swept)


def _put(tree: CommentedMap, key: str, value: Any) -> None:
    """Put a value at a dotted path of keys and of numbers of entries from 0; missing mappings are made."""
    *path, last = key.split(".")
    node: Any = tree
    for depth, part in enumerate(path, 1):
        if isinstance(node, CommentedMap) and node.get(part) is None:
            node[part] = CommentedMap()
        node = node[_place(node, part, key, path[: depth - 1])]
    node[_place(node, last, key, path)] = _node(value)


def _place(node: Any, part: str, key: str, before: Sequence[str]) -> str | int:
    """The key or number of a part of a path; raises InputError if there is no such place."""
    if isinstance(node, CommentedMap):
        return part
    where = ".".join(before)
    if not isinstance(node, CommentedSeq):
        raise InputError(f"there is no key {key!r}: {where} is a single value")
    if not part.isdecimal() or int(part) >= len(node):
        raise InputError(
            f"there is no key {key!r}: {where} has {len(node)} entries, so {where}.0 to {where}.{len(node) - 1}"
        )
    return int(part)


def _node(value: Any) -> Any:
    """A plain value as a node of YAML, on one line."""
    if isinstance(value, dict):
        node: Any = CommentedMap({key: _node(entry) for key, entry in value.items()})
    elif isinstance(value, list | tuple):
        node = CommentedSeq(_node(entry) for entry in value)
    else:
        return value
    node.fa.set_flow_style()
    return node


def _words(value: Any) -> str:
    """A value in words for a name."""
    if isinstance(value, dict):
        return " ".join(_words(value[key]) for key in (["id"] if "id" in value else value))
    return " ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value)
