"""The taxonomy of an Arena: core capabilities with fine dimensions, core tasks with benchmarks, metrics.

Merton comes with that of Embodied Arena; a file of one's own extends it or stands alone
(docs/studies/published_rules.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationInfo, model_validator

from merton.config import FaultError, Model, load, plain, read_text, text_like, tree_of, validated
from merton.errors import FileError, did_you_mean
from merton.files import resource
from merton.results.checking import MAX_NAME

SHIPPED = "embodied_arena"
"""The name of the taxonomy that comes with Merton."""

Name = Annotated[
    str,
    text_like(
        r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$", "a name on one line without space around it"
    ),
    Field(max_length=MAX_NAME),
]
Names = Annotated[tuple[Name, ...], Field(min_length=1)]
Location = tuple[str | int, ...]


class Capability(Model):
    """A core capability and its fine dimensions."""

    name: Name
    dimensions: Names


class Benchmark(Model):
    """A benchmark: its metrics and fine dimensions; `source` says where the dimensions are from.

    In the shipped taxonomy that is `page`, its page on the platform, or `ours`.
    """

    name: Name
    metrics: Names
    dimensions: Names
    source: str = ""


class Task(Model):
    """A core task and its benchmarks."""

    name: Name
    benchmarks: Annotated[tuple[Benchmark, ...], Field(min_length=1)]


class Taxonomy(Model):
    """Capabilities, tasks and metrics of the boards; `metrics` describes how each metric is mapped to 0..1.

    Names of one kind are different in letters and digits, as addresses of boards are made of these. A capability or
    task that is in the taxonomy which is extended, too, adds its dimensions or benchmarks to it.

    Raises:
        FaultError: a name stands twice or is unknown; inside `validated`, with the place.
    """

    extends: str = ""
    metrics: dict[Name, str] = Field(default_factory=dict)
    capabilities: tuple[Capability, ...] = ()
    tasks: tuple[Task, ...] = ()

    @model_validator(mode="after")
    def _names_exist_once(self, info: ValidationInfo) -> Taxonomy:
        base: Taxonomy | None = (info.context or {}).get(BASE)
        if base is None:
            for key in ("metrics", "capabilities", "tasks"):
                if not getattr(self, key):
                    raise FaultError(f"is missing or empty; a taxonomy that extends no other needs {key}", key)
        for kind, names_of, may_join in (
            ("metric", _metrics_at, False),
            ("capability", _capabilities_at, True),
            ("dimension", _dimensions_at, False),
            ("task", _tasks_at, True),
            ("benchmark", _benchmarks_at, False),
        ):
            known = [name for _, name in names_of(base)] if base else []
            own = [(at, name) for at, name in names_of(self) if not (may_join and name in known)]
            _refuse_twice(kind, own, known, self.extends)
            if may_join:
                _refuse_twice(kind, names_of(self), (), "")
        self._refuse_unknown(base)
        return self

    def _refuse_unknown(self, base: Taxonomy | None) -> None:
        whole = self if base is None else self.on(base)
        for at, benchmark in _benchmark_entries(self):
            for key, known, kind in (
                ("dimensions", whole.dimensions, "dimension"),
                ("metrics", tuple(whole.metrics), "metric"),
            ):
                names: tuple[str, ...] = getattr(benchmark, key)
                for place, name in enumerate(names):
                    if name not in known:
                        raise FaultError(
                            f"{benchmark.name}: unknown {kind} {name!r}; {did_you_mean(name, known)}"
                            f"choose from: {', '.join(known)}",
                            *(*at, key, place),
                        )
                    if name in names[:place]:
                        raise FaultError(f"{benchmark.name}: the {kind} {name!r} stands twice", *(*at, key, place))

    def on(self, base: Taxonomy) -> Taxonomy:
        """This taxonomy with all that `base` has; what is in both by name is joined, the base's part first."""
        return Taxonomy.model_construct(
            extends="",
            metrics={**base.metrics, **self.metrics},
            capabilities=_joined(base.capabilities, self.capabilities, "dimensions"),
            tasks=_joined(base.tasks, self.tasks, "benchmarks"),
        )

    @property
    def dimensions(self) -> tuple[str, ...]:
        """All fine dimensions, capability by capability."""
        return tuple(name for capability in self.capabilities for name in capability.dimensions)

    @property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """All benchmarks, task by task."""
        return tuple(benchmark for task in self.tasks for benchmark in task.benchmarks)

    def scale(self, benchmark: str) -> str:
        """Mapping of the metrics of a benchmark to 0..1, for an error message; empty if it is unknown."""
        for entry in self.benchmarks:
            if entry.name == benchmark:
                return " (" + "; ".join(f"{name}: {self.metrics[name]}" for name in entry.metrics) + ")"
        return ""


BASE = "base"
"""Key of the validation context: the taxonomy that is extended."""


def load_taxonomy(file: Path | None = None) -> Taxonomy:
    """The taxonomy in a YAML file, with all that it extends; without one the shipped one, 22 benchmarks.

    Args:
        file: `extends` in it is `SHIPPED` or another file, from the folder of this one.

    Raises:
        FileError: a file cannot be read, a key or value is wrong, a name is unknown or stands twice, or files extend
            each other in a circle; one sentence with file, line, key and the valid choices.
    """
    if file is None:
        return load(resource("merton_bringup", f"config/leaderboards/{SHIPPED}.yaml"), Taxonomy)
    return _extended(file, ())


def taxonomy_files(file: Path | None) -> tuple[Path, ...]:
    """The files that `load_taxonomy` reads for a file of one's own: it, and those that it extends.

    Raises FileError as `load_taxonomy` does.
    """
    return () if file is None else tuple(_chain(file))


def _chain(file: Path) -> Iterator[Path]:
    seen: list[Path] = []
    while True:
        seen.append(file)
        yield file
        extends = _extends(_tree(file))
        if not extends or extends == SHIPPED:
            return
        file = file.parent / extends
        if any(file.resolve() == one.resolve() for one in seen):
            return


def _tree(file: Path) -> dict[str, object]:
    tree = tree_of(read_text(file), str(file))
    if not isinstance(tree, dict):
        raise FileError(f"{file}: must be a mapping with the keys {', '.join(Taxonomy.model_fields)}")
    return tree


def _extends(tree: dict[str, object]) -> str:
    value = tree.get("extends", "")
    return value if isinstance(value, str) else ""  # anything else is refused with its line by `validated`


def _extended(file: Path, inside: Sequence[Path]) -> Taxonomy:
    """The taxonomy of a file; `inside` are the files that extend it, the first one first."""
    tree = _tree(file)
    extends = _extends(tree)
    base = None
    if extends == SHIPPED:
        base = load_taxonomy()
    elif extends:
        where = f"{file}, line {tree.lc.key('extends')[0] + 1}: extends"  # type: ignore[attr-defined]
        other = file.parent / extends
        chain = [*inside, file]
        if any(other.resolve() == one.resolve() for one in chain):
            raise FileError(
                f"{where}: taxonomies extend each other in a circle: {' -> '.join(map(str, chain))} -> {other}"
            )
        if not other.is_file():
            raise FileError(f"{where}: there is no file {other}; write {SHIPPED}, or the name of a taxonomy's file")
        base = _extended(other, chain)
    own = validated(Taxonomy, plain(tree), str(file), tree, {BASE: base})  # type: ignore[arg-type]
    return own if base is None else own.on(base)


def _metrics_at(taxonomy: Taxonomy) -> Iterator[tuple[Location, str]]:
    for name in taxonomy.metrics:
        yield ("metrics", name), name


def _capabilities_at(taxonomy: Taxonomy) -> Iterator[tuple[Location, str]]:
    for place, capability in enumerate(taxonomy.capabilities):
        yield ("capabilities", place, "name"), capability.name


def _dimensions_at(taxonomy: Taxonomy) -> Iterator[tuple[Location, str]]:
    for place, capability in enumerate(taxonomy.capabilities):
        for number, name in enumerate(capability.dimensions):
            yield ("capabilities", place, "dimensions", number), name


def _tasks_at(taxonomy: Taxonomy) -> Iterator[tuple[Location, str]]:
    for place, task in enumerate(taxonomy.tasks):
        yield ("tasks", place, "name"), task.name


def _benchmark_entries(taxonomy: Taxonomy) -> Iterator[tuple[Location, Benchmark]]:
    for place, task in enumerate(taxonomy.tasks):
        for number, benchmark in enumerate(task.benchmarks):
            yield ("tasks", place, "benchmarks", number), benchmark


def _benchmarks_at(taxonomy: Taxonomy) -> Iterator[tuple[Location, str]]:
    for at, benchmark in _benchmark_entries(taxonomy):
        yield (*at, "name"), benchmark.name


def _refuse_twice(kind: str, found: Iterable[tuple[Location, str]], known: Iterable[str], extends: str) -> None:
    first = {word(name): (name, f"it is in {extends}, too") for name in known}
    for at, name in found:
        if word(name) not in first:
            first[word(name)] = (name, "leave one")
            continue
        other, advice = first[word(name)]
        alike = "" if other == name else f" ({other!r} differs in signs and capitals alone)"
        raise FaultError(f"the {kind} {name!r} stands twice{alike}; {advice}", *at)


def _joined(base: tuple[Model, ...], more: tuple[Model, ...], key: str) -> tuple[Model, ...]:
    """Entries by name, those of `more` whose name `base` has joined to that."""
    entries = {one.name: one for one in base}  # type: ignore[attr-defined]
    for one in more:
        name = one.name  # type: ignore[attr-defined]
        if name in entries:
            one = entries[name].model_copy(update={key: (*getattr(entries[name], key), *getattr(one, key))})
        entries[name] = one
    return tuple(entries.values())


def word(name: str) -> str:
    """A name in lower case, with "-" for all but letters and digits, for addresses."""
    return "".join(character if character.isalnum() else "-" for character in name.lower())
