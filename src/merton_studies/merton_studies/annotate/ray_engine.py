"""Jobs on a Ray cluster, by Ray Data: the same jobs and the same code in each worker.

The cluster is that of `merton.cluster`. Workers read images, and checkpoints in folders, by their paths on this
machine, so they need a shared file system. Only the process that distributes the jobs opens the cache. Ray replaces a
worker that dies and repeats its block.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from merton.cluster import joined
from merton.errors import InputError, require
from merton.processes import ONE_THREAD
from merton_studies.annotate.prompting import ModelRunner
from merton_studies.annotate.work import Job, Reply

_BLOCKS = 2000
"""Most blocks that the jobs are split into; a dying worker loses one block."""


class RayEngine:
    """Actors of a cluster, each with its own copy of the model.

    Args:
        count: number of actors, >= 1.
        gpus: GPUs of each; a fraction lets several share one.

    Raises:
        MissingDependencyError: Ray is not installed.
        InfrastructureError: on entering, as `cluster.joined`.
    """

    def __init__(self, count: int, gpus: float = 0.0) -> None:
        if count < 1:
            raise InputError(f"at least one worker is needed, got {count}")
        self._ray: Any = require("ray", "cluster", "--engine ray")
        require("ray.data", "cluster", "--engine ray")
        self._count, self._gpus = count, gpus
        self._started_here = False

    def __enter__(self) -> RayEngine:
        if not self._ray.is_initialized():
            joined(variables=ONE_THREAD)
            self._started_here = True
        self._ray.data.DataContext.get_current().enable_progress_bars = False
        return self

    def __exit__(self, *_: object) -> None:
        if self._started_here:
            self._ray.shutdown()

    def run(self, jobs: Sequence[Job]) -> Iterator[list[Reply]]:
        """See `merton_studies.annotate.engines.Engine`."""
        if not jobs:
            return
        packed = [{"job": pickle.dumps(job)} for job in jobs]
        work = self._ray.data.from_items(packed, override_num_blocks=min(len(jobs), _BLOCKS))
        done = work.map_batches(
            RayWorker,
            fn_constructor_args=(self._count,),
            batch_size=1,
            compute=self._ray.data.ActorPoolStrategy(size=self._count),
            num_cpus=1,
            num_gpus=self._gpus,
        )
        for row in done.iter_rows():
            yield pickle.loads(row["replies"])


class RayWorker:
    """The class of each actor; `count` of them share a model's rate limit."""

    def __init__(self, count: int) -> None:
        self._runner = ModelRunner(count)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The replies to a batch of packed jobs, packed."""
        replies = np.empty(len(batch["job"]), dtype=object)
        for index, job in enumerate(batch["job"]):
            replies[index] = pickle.dumps(self._runner.run(pickle.loads(job)))
        return {"replies": replies}
