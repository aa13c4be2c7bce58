"""`merton run --in-process`: the trials of an experiment in processes of this machine or of a cluster, without ROS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from merton.cli.console import print_err, progress
from merton.cli.continuation import continuation_of
from merton.errors import InputError, UnknownNameError
from merton.files import locked_folder

if TYPE_CHECKING:
    from merton.experiment.run import RunDirectory
    from merton.pool import Engine

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Workers:
    """The workers that `--workers` and `--engine` name; None is as many as there are cores."""

    count: int | None = None
    engine: str = ENGINES[0]

    @classmethod
    def chosen(cls, in_process: bool, count: int | None, engine: str, of_graph: Sequence[str]) -> Workers | None:
        """The workers of a command line; None if it wants a graph of nodes.

        Args:
            of_graph: options that were given and are for a graph alone.

        Raises:
            InputError: options that do not go together.
        """
        if engine not in ENGINES:
            raise UnknownNameError("engine", engine, ENGINES)
        if not in_process:
            if count is not None or engine != ENGINES[0]:
                option = "--workers" if count is not None else "--engine"
                raise InputError(f"{option} is for runs without a graph of nodes: add --in-process, or leave it out")
            return None
        if of_graph:
            needs = "needs" if len(of_graph) == 1 else "need"
            raise InputError(
                f"--in-process starts no nodes, and {', '.join(of_graph)} {needs} them: leave one of them out"
            )
        return cls(count, engine)

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras that their engine needs."""
        return ("cluster",) if self.engine == "ray" else ()

    @property
    def words(self) -> tuple[str, ...]:
        """The options that choose them."""
        count = () if self.count is None else ("--workers", str(self.count))
        return ("--in-process", *count, *(() if self.engine == ENGINES[0] else ("--engine", self.engine)))

    def hired(self) -> tuple[int | None, Engine]:
        """Their number and the engine that starts them."""
        if self.engine == "ray":
            from merton.cluster import RayEngine

            cluster = RayEngine(self.count)
            return cluster.count, cluster
        from merton.pool import LocalEngine

        return self.count, LocalEngine()


def begun_otherwise(directory: RunDirectory, chosen: Workers | None) -> None:
    """Refuse to go on with a run of a graph without one, and the reverse: one of a lab would get simulated trials.

    Raises:
        InputError: the run was begun in the other way, and has results.
    """
    if directory.database.exists() and directory.in_process != (chosen is not None):
        begun, remedy = ("with", "add it") if directory.in_process else ("without", "leave it out")
        raise InputError(f"{directory.path} was begun {begun} --in-process and goes on in the same way: {remedy}")


def run_here(directory: RunDirectory, chosen: Workers) -> None:
    """Run the trials that are not finished, with one bar; if that ends early, say how to go on.

    Raises:
        InfrastructureError: a trial failed in every attempt, or workers died of it; earlier results are safe.
    """
    from merton.experiment.workers import complete
    from merton.pool import open_pool
    from merton.results.store import ResultStore

    started = time.monotonic()
    try:
        with locked_folder(directory.path, "merton run"):
            directory.amend(in_process=True)
            count, engine = replace(chosen, count=directory.spec.facts.workers(chosen.count)).hired()
            with (
                ResultStore(directory.database) as store,
                progress("trials") as move,
                open_pool(count, engine, print_err) as pool,
            ):
                gone_on_with = bool(store.successes(directory.id))
                for done, left in complete(pool, directory, store, print_err):
                    move(done, left)
    except BaseException as error:
        ended = "Interrupted." if isinstance(error, KeyboardInterrupt) else "The run has ended early."
        print_err(f"{ended}{continuation_of(directory, 'sim', {}, False, *chosen.words)}")
        raise
    directory.finish(wall_s=None if gone_on_with else round(time.monotonic() - started, 1))
