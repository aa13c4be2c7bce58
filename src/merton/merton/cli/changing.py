"""The experiment that a command line names, and the options that change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from merton.cli.console import own_command, print_out
from merton.errors import InputError, near_miss

if TYPE_CHECKING:
    from merton.experiment.changes import Experiment, Settings

ExperimentArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="EXPERIMENT", help="A file, or one that comes with Merton, such as quickstart.", show_default=False
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value of the experiment, such as agents.0.vla=glance; again for a sweep."),
]
OneSetOption = Annotated[
    list[str] | None, typer.Option("--set", help="key=value of the experiment, such as agents.0.vla=glance.")
]
SeedOption = Annotated[int | None, typer.Option("--seed", min=0, help="In place of the experiment's.")]
ScenesOption = Annotated[int | None, typer.Option("--scenes", min=1, help="Scenes of each task.")]
LevelsOption = Annotated[str | None, typer.Option("--levels", help="Such as 0,3,5, or one, or staircase.")]
DistortionsOption = Annotated[str | None, typer.Option("--distortions", help="With commas; '' for none.")]
AgentsOption = Annotated[
    str | None, typer.Option("--agents", help="Ids of the experiment's agents, VLAs or VLM+VLA, with commas.")
]
CamerasOption = Annotated[str | None, typer.Option("--cameras", help="Whose images are distorted, with commas.")]


def named_experiment(name: str | None, command: str) -> Path:
    """The file of `ExperimentArgument`; without a name, lists those that come with Merton and ends with exit code 2."""
    from merton.experiment.changes import experiment_file, shipped

    if name is not None:
        return experiment_file(name)
    print_out(f"These experiments come with Merton: {own_command(command, 'NAME')}")
    for one, file in shipped().items():
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        print_out(f"  {one:<22} {first.removeprefix('# ')}")
    print_out(f"One of your own: {own_command('new', 'mine.yaml')}")
    raise typer.Exit(2)


def experiment_named(name: str | None, command: str, settings: Sequence[str] | None, **options: Any) -> Experiment:
    """The experiment of a command that takes one: `named_experiment` with the changes of `settings_of`.

    Raises:
        InputError: no such experiment, a wrong setting, or several values of a key.
    """
    from merton.experiment.changes import one_experiment

    file = named_experiment(name, command.removeprefix("merton "))
    own, _ = by_namespace(settings, "", ())
    return one_experiment(file, settings_of(file, own, **options), command)


def settings_of(
    file: Path,
    texts: Sequence[str] | None,
    *,
    seed: int | None = None,
    scenes: int | None = None,
    levels: str | None = None,
    distortions: str | None = None,
    agents: str | None = None,
    cameras: str | None = None,
) -> Settings:
    """The settings of `merton.experiment.changes` that options name.

    Args:
        file: the experiment.
        texts: of `--set`, key=value each.
        seed, scenes, levels, distortions, agents, cameras: of the options of these names.

    Raises:
        InputError: a value is no YAML, an agent does not exist, or two options are of one key.
    """
    from merton.experiment.changes import agents_named, value_of

    chosen: list[tuple[str, Any]] = []
    if seed is not None:
        chosen.append(("seed", seed))
    if scenes is not None:
        chosen.append(("scenes", scenes))
    if levels is not None:
        words = [value_of(word, "levels") for word in _words(levels)]
        chosen.append(("levels", words[0] if len(words) == 1 and isinstance(words[0], str) else tuple(words)))
    if distortions is not None:
        chosen.append(("distortions", _words(distortions)))
    if agents is not None:
        chosen.append(("agents", agents_named(file, _words(agents))))
    if cameras is not None:
        chosen.append(("distort.cameras", _words(cameras)))
    by_option = {key for key, _ in chosen}
    for key, value in map(_pair, texts or ()):
        if key in by_option:
            raise InputError(
                f"--{key.rpartition('.')[2]} and --set {key}={value} are of one key: leave one of them out"
            )
        chosen.append((key, value_of(value, key)))
    return chosen


def by_namespace(texts: Sequence[str] | None, graph: str, arguments: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """The texts of `--set` that are of the experiment, and those of a graph by name: the experiment's keys come first.

    Args:
        texts: key=value each.
        graph, arguments: its name, and the names of its arguments.

    Raises:
        InputError: a text is no key=value, a key is in neither of them, or an argument of the graph comes twice.
    """
    from merton.experiment.plan import ExperimentSpec

    own, of_graph = [], dict[str, str]()
    keys, names = list(ExperimentSpec.model_fields), list(arguments)
    for text in texts or ():
        key, value = _pair(text)
        first = key.partition(".")[0]
        if first in keys:
            own.append(text)
        elif key not in names:
            near = [repr(word) for word in (near_miss(first, keys), near_miss(key, names)) if word]
            hint = f"did you mean {' or '.join(dict.fromkeys(near))}? " if near else ""
            others = f"; arguments of the graph {graph}: {', '.join(names)}" if names else ""
            raise InputError(f"--set {key}: no such key; {hint}keys of an experiment: {', '.join(keys)}{others}")
        elif key in of_graph:
            raise InputError(f"--set {key} is there twice: an argument of the graph {graph} has one value")
        else:
            of_graph[key] = value
    return own, of_graph


def words_of(settings: Sequence[str] | None, **options: object) -> list[str]:
    """The options of a command line again, to paste."""
    given: Mapping[str, object] = {name: value for name, value in options.items() if value is not None}
    return [
        *(word for name, value in given.items() for word in (f"--{name}", str(value))),
        *(word for text in settings or () for word in ("--set", text)),
    ]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set takes key=value, got {text!r}")
    return key.strip(), value


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
