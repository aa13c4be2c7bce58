"""The Ray cluster that RAY_ADDRESS names, or one of this machine, and workers on it, on any machine.

Its machines need Merton, in the same version. Needs the extra `cluster`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from merton.errors import InfrastructureError, require
from merton.pool import Shared, Worker
from merton.processes import ONE_THREAD

ADDRESS_VARIABLE = "RAY_ADDRESS"
_ANSWER_S = 10.0
"""Ray itself tries for minutes to reach an address where nothing is [s]."""
_VARIABLES = {**ONE_THREAD, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Environment of the actors. They share the GPUs of their machine, which Ray would hide."""


def joined(cores: int | None) -> Any:
    """The package Ray, connected; without RAY_ADDRESS, or with an empty one, a cluster is started on this machine.

    Args:
        cores: of a cluster that is started here; None: as many as the machine has.

    Raises:
        MissingDependencyError: Ray is not installed.
        InfrastructureError: nothing answers at RAY_ADDRESS, or Ray cannot use or start the cluster.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = require("ray", "cluster", "--engine ray")
    address = os.environ.get(ADDRESS_VARIABLE, "")
    where: dict[str, Any] = {"address": "local", "num_cpus": cores, "include_dashboard": False}
    if address:
        where = {"address": address}
        _check_answers(address)
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        ray.init(**where, **quiet, runtime_env={"env_vars": _VARIABLES})
    except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
        what = f"there is no Ray cluster at {ADDRESS_VARIABLE}={address}" if address else "no Ray cluster starts here"
        raise InfrastructureError(f"{what}: {str(error).strip().splitlines()[0]}") from None
    return ray


def _check_answers(address: str) -> None:
    """Raises InfrastructureError if the host and port of an address answer to no connection; "auto" has none."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise InfrastructureError(f"there is no Ray cluster at {ADDRESS_VARIABLE}={address}: {error}") from None


class RayEngine:
    """Actors of a cluster; see `merton.pool.Engine`.

    Args:
        count: actors that there will be; None: one for each core of the cluster. A cluster that is started here is
            given so many cores, an existing one may have fewer: those that find none wait for one.
        gpus: that each actor has for itself, perhaps a part of one; 0: all share those of their machine.

    Attributes:
        count: as given, or found.

    Raises:
        InfrastructureError, MissingDependencyError: as `joined`.
    """

    def __init__(self, count: int | None = None, gpus: float = 0.0) -> None:
        self._ray: Any = joined(count)
        self.count = count or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._options = {"num_cpus": 1, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}

    def hire(self) -> Worker:
        """See `Engine`."""
        return _Actor(self._ray, self._options)

    def share(self, value: object) -> Shared:
        """See `Engine`."""
        return _InStore(self._ray.put(value))

    def close(self) -> None:
        """See `Engine`."""
        self._ray.shutdown()


class _Actor:
    """One actor; Ray neither restarts it nor repeats its work, because the pool does."""

    def __init__(self, ray: Any, options: Mapping[str, Any]) -> None:
        self.lost: tuple[type[BaseException], ...] = (ray.exceptions.RayError,)
        self._ray = ray
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
