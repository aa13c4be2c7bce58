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
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from merton.results.text import harmless

if TYPE_CHECKING:
    from rich.progress import Progress


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
LONGEST_QUIET_S = 30.0
"""The longest pause between two such lines [s]: a reader of a log takes no work for hanging."""


def run_named(name: Path | None) -> Path | None:
    """The folder of the run that an argument names; see `merton.experiment.run_names.find_run`."""
    from merton.experiment.run_names import find_run

    return None if name is None else find_run(name)


def record_named(name: str) -> str:
    """The record that an argument names; see `merton.experiment.run_names.find_record`."""
    from merton.experiment.run_names import find_record

    return find_record(name)


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
TaxonomyOption = Annotated[
    Path | None,
    typer.Option("--taxonomy", help="File of an Arena's own benchmarks, dimensions and metrics (.yaml)."),
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


def print_cut(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose last column is cut where the terminal ends; the others, such as names, never are."""
    table = Table(*headings, box=None, pad_edge=False)
    before = [max(map(len, cells)) for cells in list(zip(headings, *rows, strict=True))[:-1]]
    room = STDOUT.width - sum(2 + width for width in before)
    for *cells, last in rows:
        line = Text(last)
        line.truncate(max(room, len(headings[-1])), overflow="ellipsis")
        add_row(table, *cells, line)
    STDOUT.print(table)


def own_command(*words: str) -> str:
    """A command line of this very `merton` that can be pasted: with its path where a shell would not find it.

    It begins with the lab's catalogue, files of tasks and folder of worlds that are set, if any are.
    """
    program = Path(sys.argv[0])
    if program.name == "merton":
        on_path = shutil.which("merton")
        found = on_path is not None and Path(on_path).resolve() == program.resolve()
        command = ["merton" if found else from_here(program.absolute())]
    else:
        command = [from_here(Path(sys.executable)), "-m", "merton"]
    variables = ("MERTON_CATALOGUE", "MERTON_TASKS", "MERTON_WORLDS")
    settings = [(name, value) for name in variables if (value := os.environ.get(name))]
    before = [f"{name}={shlex.quote(value)}" for name, value in settings]
    return " ".join([*before, shlex.join([*command, *words])])


def from_here(path: Path) -> str:
    """A path as it is from here where it lies below, else the whole."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


class Meter:
    """Progress of a work in words, by calls (done, total): an `OnProgress`.

    Work that the first call reports may have been done before: the pace is that of the calls after it. A call with
    less done than the one before begins another work.

    Args:
        title: of the work.
        costs: of each piece in the order in which they are done, in any unit, >= 0: pieces that take longer than
            others then do not mislead the time left. All alike if left out, or if there are not `total` of them.
    """

    def __init__(self, title: str, costs: Sequence[float] = ()) -> None:
        self.title, self._costs = title, (0.0, *accumulate(costs))
        self._first: tuple[float, float] | None = None  # time [s] and cost of the first call
        self.done, self.total = 0, 0

    def __call__(self, done: int, total: int) -> None:
        begins = self._first is None or done < self.done
        self.done, self.total = done, total
        if begins:
            self._first = time.monotonic(), self.cost(done)
        self.moved()

    def name(self, title: str) -> None:
        """Name the work, or the part of it that begins."""
        self.title = title
        self.moved()

    def moved(self) -> None:
        """Called after each change."""

    def cost(self, done: int) -> float:
        """The cost of the first `done` pieces."""
        return self._costs[done] if len(self._costs) == self.total + 1 and self._costs[-1] else float(done)

    def words(self) -> str:
        """Such as "trials: 3 of 8, about 20 s left"; the title alone before anything is known."""
        if self._first is None or not self.total:
            return f"{self.title} …"
        first_s, first = self._first
        now, end = self.cost(self.done), self.cost(self.total)
        left_s = (time.monotonic() - first_s) / (now - first) * (end - now) if first < now < end else 0.0
        left = f", about {left_s:.0f} s left" if left_s < 90.0 else f", about {left_s / 60.0:.0f} min left"
        return f"{self.title}: {self.done} of {self.total}{left if left_s else ''}"


class _Bar(Meter):
    """The same as a bar of rich, which has its own pace."""

    def __init__(self, title: str, costs: Sequence[float], bar: Progress) -> None:
        super().__init__(title, costs)
        self._bar, self._task = bar, bar.add_task(escape(title), total=None, count="")

    def moved(self) -> None:
        """Move the bar."""
        total = self.cost(self.total) if self.total else None
        count = f"{self.done}/{self.total}" if self.total else ""
        self._bar.update(
            self._task, description=escape(self.title), completed=self.cost(self.done), total=total, count=count
        )


@contextmanager
def progress(title: str, costs: Sequence[float] = ()) -> Iterator[Meter]:
    """A bar with the time left, on stderr; without a terminal a line now and then, at least every half minute.

    Gives the function (done, total) that moves it.

    Args:
        title, costs: as of `Meter`.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    if not STDERR.is_terminal:
        meter = Meter(title, costs)
        with _repeated(meter.words):
            yield meter
        return
    count = TextColumn("{task.fields[count]}")
    columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, console=STDERR, transient=True, speed_estimate_period=PACE_S) as bar:
        yield _Bar(title, costs, bar)


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


def pauses_s() -> Iterator[float]:
    """The pauses before the lines of a log [s], without end: each twice as long as the one before, to the longest."""
    pause_s = QUIET_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, max(QUIET_S, LONGEST_QUIET_S))


@contextmanager
def _repeated(state: Callable[[], str]) -> Iterator[None]:
    """Print the state after a few seconds, then ever more rarely: where no bar is drawn, such as in the log of a CI."""
    ended = threading.Event()
    said: list[str] = []

    def repeat() -> None:
        for pause_s in pauses_s():
            if ended.wait(pause_s):
                return
            said[:] = [state()]
            print_err(said[0])

    repeating = threading.Thread(target=repeat, daemon=True)
    repeating.start()
    try:
        yield
    finally:
        ended.set()
        repeating.join()
    if said and state() != said[0]:  # a log does not end in the middle
        print_err(state())
