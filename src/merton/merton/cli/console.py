"""The terminal of the `merton` command: how lines, tables and progress are shown."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from merton.progress import OnProgress
from merton.results.text import harmless


class _Harmless(RenderHook):
    """Takes from everything that a console shows what a terminal would obey: texts of servers and files are shown, too.

    Ours: rich removes a few control characters from a text, and not ESC. Its own colours are not part of a text.
    """

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """See `RenderHook`."""
        return [_Shown(renderable) for renderable in renderables]


class _Shown:
    """A thing that is shown, without control and direction characters in its text."""

    def __init__(self, what: ConsoleRenderable) -> None:
        self._what = what

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._what, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)


def _console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, emoji=False)  # module:M: is a name, not a picture
    console.push_render_hook(_Harmless())
    return console


STDOUT = _console()
STDERR = _console(stderr=True)

PACE_S = 120.0
"""A bar's time left is by the pace of so long [s]: pieces of work may take a quarter of it."""
QUIET_S = 3.0
"""Time for which a command may say nothing at first where there is no terminal to draw a bar on [s]."""
LONGEST_QUIET_S = 60.0
"""The longest pause between two such lines [s]: a run of a night fills no log, and a CI takes none for hanging."""


def run_named(name: Path | None) -> Path | None:
    """The folder of the run that an argument names; see `merton.experiment.run_names.find_run`."""
    from merton.experiment.run_names import find_run

    return None if name is None else find_run(name)


def record_named(name: str) -> str:
    """The record that an argument names: a URL or file as it is, else a run; `latest` is always a run."""
    from merton.experiment.run_names import LATEST

    if name != LATEST and ("://" in name or Path(name).exists() or Path(name).suffix):
        return name
    return str(run_named(Path(name)))


Run = Annotated[Path, typer.Argument(metavar="RUN", callback=run_named, help="A run: its folder, its name or latest.")]
"""The argument that names a run."""
Record = Annotated[
    str,
    typer.Argument(
        metavar="RECORD", callback=record_named, help="A run, latest, an SQLite file or a postgresql:// URL."
    ),
]
"""The argument that names a record of results."""
RecordOrMatrix = Annotated[
    str,
    typer.Argument(
        metavar="RECORD",
        callback=record_named,
        help="A run, latest, an SQLite file, a postgresql:// URL, or a response matrix (.csv, .tsv, .parquet): rows "
        "agents, columns cases, scores 0 to 1; or the columns agent, case and score; or results of lm-eval, mteb or "
        "Inspect, .json or a folder.",
    ),
]
"""The argument that names a record or a response matrix."""
AllOption = Annotated[
    bool, typer.Option("--all", help="Show all tables and remarks of the board, not the first table alone.")
]
METRIC_OPTION = typer.Option(
    help="What trials are rated by: success (the default), progress, above_floor or execution (the paper's score)."
)


def print_out(text: str) -> None:
    """Print a text as it is, but for control characters: no markup, no colours, no line breaks of the width."""
    STDOUT.print(text, markup=False, highlight=False, soft_wrap=True)


def print_err(text: str) -> None:
    """`print_out` on stderr."""
    STDERR.print(text, markup=False, highlight=False, soft_wrap=True)


def print_remarks(remarks: Sequence[str], most: int = 12) -> None:
    """Print what is to be said of an input on stderr, at most so many sentences."""
    for remark in remarks[:most]:
        print_err(remark)
    if len(remarks) > most:
        print_err(f"and {len(remarks) - most} more of this kind")


def add_row(table: Table, *cells: object) -> None:
    """Add a row of texts as they are: a bracket in a name is not markup."""
    table.add_row(*(Text(str(cell)) for cell in cells))


def own_command(*words: str) -> str:
    """A command line of this very `merton` that can be pasted: with its path where a shell would not find it.

    It begins with the lab's catalogue of models and files of tasks that are set, if any are.
    """
    program = Path(sys.argv[0])
    if program.name == "merton":
        on_path = shutil.which("merton")
        found = on_path is not None and Path(on_path).resolve() == program.resolve()
        command = ["merton" if found else from_here(program.absolute())]
    else:
        command = [from_here(Path(sys.executable)), "-m", "merton"]
    settings = [(name, value) for name in ("MERTON_CATALOGUE", "MERTON_TASKS") if (value := os.environ.get(name))]
    before = [f"{name}={shlex.quote(value)}" for name, value in settings]
    return " ".join([*before, shlex.join([*command, *words])])


def from_here(path: Path) -> str:
    """A path as it is from here where it lies below, else the whole."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


@contextmanager
def progress(title: str) -> Iterator[OnProgress]:
    """A bar with the time left, on stderr; gives the function (done, total) that moves it.

    The work that the first call reports may have been done before: the pace is that of the calls after it.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    if not STDERR.is_terminal:
        calls: list[_Call] = []  # the first, and the last
        with _repeated(lambda: _told(title, calls)):
            yield lambda done, total: calls.__setitem__(slice(1, None), [(time.monotonic(), done, total)])
        return
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, console=STDERR, transient=True, speed_estimate_period=PACE_S) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def working(title: str) -> Iterator[Callable[[str], None]]:
    """A moving sign beside the name of what is done, on stderr, for work of unknown length; gives the function that
    names the next step."""
    if not STDERR.is_terminal:
        names = [title]
        with _repeated(lambda: f"{names[-1]} …"):
            yield names.append
        return
    with STDERR.status(Text(f"{title} …")) as status:
        yield lambda step: status.update(Text(f"{step} …"))


@contextmanager
def _repeated(state: Callable[[], str]) -> Iterator[None]:
    """Print the state after a few seconds, then ever more rarely: where no bar is drawn, such as in the log of a CI."""
    ended = threading.Event()
    said: list[str] = []

    def repeat() -> None:
        pause_s = QUIET_S
        while not ended.wait(pause_s):
            said[:] = [state()]
            print_err(said[0])
            pause_s = min(2 * pause_s, max(QUIET_S, LONGEST_QUIET_S))

    repeating = threading.Thread(target=repeat, daemon=True)
    repeating.start()
    try:
        yield
    finally:
        ended.set()
        repeating.join()
    if said and state() != said[0]:  # a log does not end in the middle
        print_err(state())


_Call = tuple[float, int, int]
"""Of the function that moves a bar: when [s], done and total."""


def _told(title: str, calls: Sequence[_Call]) -> str:
    """A bar in words: what is done of how much, and the time left at the pace since the first call."""
    if not calls or not calls[-1][2]:
        return f"{title} …"
    (first_s, first, _), (_, done, total) = calls[0], calls[-1]
    pace_s = (time.monotonic() - first_s) / (done - first) if first < done else 0.0
    left = f", about {pace_s * (total - done):.0f} s left" if pace_s and done < total else ""
    return f"{title}: {done} of {total}{left}"
