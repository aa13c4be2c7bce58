"""Workers on a Ray cluster: each an actor with a simulated cell of its own, on any machine of it.

The cluster is that of `merton.cluster`. Its machines need Merton, in the same version, and no shared files: trials
come and go as objects, and only this process writes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from merton.cluster import joined
from merton.experiment.pool import Shared, Worker
from merton.processes import ONE_THREAD

_VARIABLES = {**ONE_THREAD, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Environment of the actors. They share the GPUs of their machine, which Ray would hide."""


class RayEngine:
    """Actors of a cluster; see `merton.experiment.pool.Engine`.

    Args:
        count: actors that there will be; None: one for each core of the cluster. A cluster that is started here is
            given so many cores, an existing one may have fewer: those that find none wait for one.

    Attributes:
        count: as given, or found.

    Raises:
        InfrastructureError, MissingDependencyError: as `cluster.joined`.
    """

    def __init__(self, count: int | None = None) -> None:
        self._ray: Any = joined(count, _VARIABLES)
        self.count = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def hire(self) -> Worker:
        """See `Engine`."""
        return _Actor(self._ray)

    def share(self, value: object) -> Shared:
        """See `Engine`."""
        return _InStore(self._ray.put(value))

    def close(self) -> None:
        """See `Engine`."""
        self._ray.shutdown()


class _Actor:
    """One actor; Ray neither restarts it nor repeats its work, because the pool does."""

    def __init__(self, ray: Any) -> None:
        self.lost: tuple[type[BaseException], ...] = (ray.exceptions.RayError,)
        self._ray = ray
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0}
        self._actor = ray.remote(Desk).options(**options).remote()

    def submit(self, work: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        answer: Future[Any] = Future()

        def pass_on(done: Future[Any]) -> None:
            try:
                result, error = done.result()
            except BaseException as lost:
                answer.set_exception(lost)
            else:
                answer.set_exception(error) if error is not None else answer.set_result(result)

        self._actor.do.remote(work, arguments).future().add_done_callback(pass_on)
        return answer

    def end(self) -> None:
        self._ray.kill(self._actor)


class Desk:
    """The class of the actors."""

    def __init__(self) -> None:
        import cv2

        cv2.setNumThreads(1)

    def do(self, work: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
        """The result of a function, or its error: Ray would wrap it."""
        try:
            return work(*arguments), None
        except Exception as error:
            return None, error


class _InStore:
    """A value in the cluster's object store, which a process keeps until it meets another one."""

    def __init__(self, reference: Any) -> None:
        self._reference = reference

    def get(self) -> Any:
        global _held  # noqa: PLW0603 - one copy for all tasks of this process
        if _held is None or _held[0] != self._reference:
            import ray

            _held = self._reference, ray.get(self._reference)
        return _held[1]


_held: tuple[Any, Any] | None = None
