"""Every test process gets an unused ROS domain before any import of ROS."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from merton.graph.supervisor import claim_domain, environment

_DOMAIN, _HOLDER = claim_domain()  # held for the life of this process (with xdist: of this worker)
os.environ.pop("ROS_LOCALHOST_ONLY", None)
os.environ.update(environment(_DOMAIN))
os.environ["ROS_LOG_DIR"] = tempfile.mkdtemp(prefix="merton_test_ros_log_")
os.environ["RCUTILS_COLORIZED_OUTPUT"] = "0"
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    # A suite that a script starts in the background ignores Ctrl-C, and so would all that its tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shared fixtures of a file are made once: by one worker, unless the file names a group itself."""
    for item in items:
        defined = item._fixtureinfo.name2fixturedefs.values() if hasattr(item, "_fixtureinfo") else ()
        shared = any(one[-1].scope == "module" and one[-1].baseid.startswith("tests") for one in defined)
        if shared and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0].rpartition("/")[2]))


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    """The timeout of a test follows the machine, as the limits of its waits do."""
    import pytest_timeout

    from patience import stretched

    return bool(pytest_timeout.pytest_timeout_set_timer(item, settings._replace(timeout=stretched(settings.timeout))))


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
