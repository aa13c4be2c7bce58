"""Every test process gets a ROS domain nobody else uses, before anything of ROS is imported."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from merton.graph.supervisor import claim_domain, environment

_DOMAIN, _HOLDER = claim_domain()  # held for the life of this process (with xdist: of this worker)
os.environ.pop("ROS_LOCALHOST_ONLY", None)
os.environ.update(environment(_DOMAIN))
os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="merton_test_ros_log_")
os.environ["RCUTILS_COLORIZED_OUTPUT"] = "0"


@pytest.fixture
def ros() -> Iterator[Any]:
    """ROS for one test."""
    from ros import Ros

    ros = Ros()
    try:
        yield ros
    finally:
        ros.close()


@pytest.fixture
def probe(ros: Any) -> Any:
    """A node that listens and calls."""
    from ros import Probe

    return ros.add(Probe)
