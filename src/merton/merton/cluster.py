"""The Ray cluster that RAY_ADDRESS names, or one of this machine.

Needs the extra `cluster`.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from merton.errors import InfrastructureError, require

ADDRESS_VARIABLE = "RAY_ADDRESS"
_ANSWER_S = 10.0
"""Ray itself tries for minutes to reach an address where nothing is [s]."""


def joined(cores: int | None = None, variables: Mapping[str, str] | None = None) -> Any:
    """The package Ray, connected; without RAY_ADDRESS, or with an empty one, a cluster is started on this machine.

    Args:
        cores: of a cluster that is started here; None: as many as the machine has.
        variables: environment of all its workers.

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
        ray.init(**where, **quiet, runtime_env={"env_vars": dict(variables or {})})
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
