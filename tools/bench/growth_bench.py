"""Growth: time and peak memory of each long command at 1e3 to 1e6 trials or rows: one JSON object on standard output.

Run by tools/bench/bench.py. Each measurement is a process of its own, so that its memory is its own:
`growth_bench.py OPERATION FOLDER SIZE`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

SCENES = {1_000: 2, 10_000: 20, 100_000: 202, 1_000_000: 2016}
"""Trials to the scenes of each task that make about as many."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

LARGEST = {"report_with_files": 10_000}
"""Operation to the largest size that is measured: each trial.json takes at least 4 kB of the disk."""

LEAST_ADDED_MB = 10.0
"""Memory below it is that of allocators and page caches, and no growth can be told from it."""

BATCH = 40
"""Responses that annotate caches at once: eight images with five tasks."""

Operation = Callable[[Path, int], Callable[[], Any]]
"""Prepares in a folder for so many trials or rows, which includes the imports; gives what is measured."""


def write_record(folder: Path, size: int) -> Callable[[], Any]:
    """Make the record that the others read; measured for its size alone."""
    import synthetic_record

    return lambda: synthetic_record.make_run(folder, SCENES[size])


def read_record(folder: Path, size: int) -> Callable[[], Any]:
    """All trials as objects."""
    from merton.results.store import ResultStore

    store = ResultStore(folder / "run", read_only=True)
    return store.records


def export_csv(folder: Path, size: int) -> Callable[[], Any]:
    """`merton results export`, CSV."""
    return _export(folder, "trials.csv")


def export_parquet(folder: Path, size: int) -> Callable[[], Any]:
    """`merton results export`, Parquet."""
    return _export(folder, "trials.parquet")


def _export(folder: Path, name: str) -> Callable[[], Any]:
    from merton.results.export import export
    from merton.results.parquet import require_pyarrow
    from merton.results.store import ResultStore

    require_pyarrow()
    store = ResultStore(folder / "run", read_only=True)
    return lambda: export(store, folder / name)


def resume(folder: Path, size: int) -> Callable[[], Any]:
    """Find the first trial that is left: successes, finished trials, the plan's rounds."""
    from merton.experiment.run import RunDirectory
    from merton.results.store import ResultStore

    def look() -> int:
        run = RunDirectory(folder / "run")
        with ResultStore(run.database) as store:
            done = store.successes(run.id)
        finished = run.finished(done)
        return sum(trial.id not in finished for group in run.spec.rounds(done) for trial in group)

    return look


def rate_likelihood(folder: Path, size: int) -> Callable[[], Any]:
    """The fit alone, from a table of matches."""
    from merton.rating import likelihood

    table = _table(folder)
    return lambda: likelihood.fit(table)


def rate_agi_elo(folder: Path, size: int) -> Callable[[], Any]:
    """20 orders, from a table of matches."""
    from merton.rating import agi_elo

    table = _table(folder)
    return lambda: agi_elo.rate(table)


def _table(folder: Path) -> Any:
    from merton.rating.checking import table_of
    from merton.results.store import ResultStore

    with ResultStore(folder / "run", read_only=True) as store:
        agents, cases, scores = zip(*store.matches(), strict=True)
    return table_of(agents, cases, scores, {})


def board(folder: Path, size: int) -> Callable[[], Any]:
    """`merton leaderboard show --out`."""
    from merton.leaderboard.snapshot import store as snapshots
    from merton.leaderboard.snapshot.terminal import render_snapshot
    from merton.results.store import ResultStore

    def show() -> None:
        with ResultStore(folder / "run", read_only=True) as store:
            snapshot = snapshots.take(store)
        (folder / "board.json").write_bytes(snapshots.to_json(snapshot))
        render_snapshot(snapshot)

    return show


def site(folder: Path, size: int) -> Callable[[], Any]:
    """`merton leaderboard build`."""
    from merton.cli import leaderboard
    from merton.leaderboard import site
    from merton.leaderboard.snapshot import store as snapshots

    assert site, snapshots
    return lambda: leaderboard.build(str(folder / "run"), folder / "site")


def report(folder: Path, size: int) -> Callable[[], Any]:
    """`merton report` of a run whose trials have no files beside the record, but for the undistorted ones."""
    from merton.study.report import write_report

    return lambda: write_report(folder / "run")


def report_with_files(folder: Path, size: int) -> Callable[[], Any]:
    """The same where every trial has a trial.json of 2 kB, as after a real run, but without pictures."""
    import synthetic_record

    from merton.experiment.run import RunDirectory
    from merton.study.report import write_report

    run = RunDirectory(folder / "run")
    for trial in run.spec.trials():
        if not trial.case.is_reference:
            synthetic_record.write_trial_file(run, trial)
    return lambda: write_report(folder / "run")


def cache_insert(folder: Path, size: int) -> Callable[[], Any]:
    """Store responses in batches, each durable."""
    from merton_studies.annotate.cache import Cache, CachedResponse

    def fill() -> None:
        with Cache(folder / "cache.sqlite") as cache:
            for start in range(0, size, BATCH):
                cache.add((_key(n), CachedResponse(RESPONSE, 0.1)) for n in range(start, min(start + BATCH, size)))

    return fill


def cache_find(folder: Path, size: int) -> Callable[[], Any]:
    """Look all of them up."""
    from merton_studies.annotate.cache import Cache

    keys = [_key(number) for number in range(size)]

    def look() -> None:
        with Cache(folder / "cache.sqlite") as cache:
            assert len(cache.find(keys)) == size

    return look


RESPONSE = json.dumps({"text": "red cube near left; lower gripper, close, lift", "truncated": False})


def _key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


OPERATIONS: tuple[Operation, ...] = (
    write_record,
    read_record,
    export_csv,
    export_parquet,
    resume,
    rate_likelihood,
    rate_agi_elo,
    board,
    report,
    site,
    report_with_files,
    cache_insert,
    cache_find,
)


def measured(operation: Operation, folder: Path, size: int) -> dict[str, float]:
    """Seconds of processor time [s], and peak memory of the process [MB], in all and what the work added."""
    work = operation(folder, size)
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "mb": after.ru_maxrss / 1e3,
        "added_mb": (after.ru_maxrss - before.ru_maxrss) / 1e3,
    }


def exponents(found: dict[int, float], least: float) -> dict[str, float]:
    """b of a growth by n^b, from 1e4 to 1e5 and from there to 1e6, where both ends were measured above `least`."""
    pairs = (("1e4_1e5", 10_000, 100_000), ("1e5_1e6", 100_000, 1_000_000))
    return {
        name: round(math.log10(found[last] / found[first]), 2)
        for name, first, last in pairs
        if found.get(first, 0.0) > least < found.get(last, 0.0)
    }


def measure(folder: Path, sizes: Sequence[int] = tuple(SCENES)) -> dict[str, Any]:
    """Every operation at every size, each in a process of its own; a line on standard error after each."""
    found: dict[str, dict[int, tuple[float, float, float]]] = {}
    load = os.getloadavg()[0]
    for size in sizes:
        for operation in OPERATIONS:
            name = operation.__name__
            if size > LARGEST.get(name, size):
                continue
            command = [sys.executable, __file__, name, str(folder / str(size)), str(size)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | ONE_THREAD)
            figures = json.loads(done.stdout.splitlines()[-1])
            print(f"{size:>8} {name:<16} {json.dumps(figures)}", file=sys.stderr, flush=True)
            found.setdefault(name, {})[size] = figures["s"], figures["mb"], figures["added_mb"]
        shutil.rmtree(folder / str(size))
    return {"load_at_start": load, **{name: row(sizes) for name, sizes in found.items()}}


def row(found: dict[int, tuple[float, float, float]]) -> dict[str, float]:
    """A row of the table, from size to seconds, peak memory and added memory [MB]."""
    times, added = ({size: figures[column] for size, figures in found.items()} for column in (0, 2))
    return {
        **{f"{size:.0e}_s".replace("+0", ""): figures[0] for size, figures in found.items()},
        **{f"s_{key}": value for key, value in exponents(times, 0.0).items()},
        **{f"{size:.0e}_mb".replace("+0", ""): figures[1] for size, figures in found.items()},
        **{f"mb_{key}": value for key, value in exponents(added, LEAST_ADDED_MB).items()},
    }


def main() -> None:
    """Measure all, or one operation at one size in this process."""
    if len(sys.argv) == 4:
        by_name = {operation.__name__: operation for operation in OPERATIONS}
        print(json.dumps(measured(by_name[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder))))


if __name__ == "__main__":
    main()
