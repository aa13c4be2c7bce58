"""What several files of unit tests look at: the simulated cell and its cameras, made once for a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:  # most of these tests need no simulator
    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import SimulatedCell

# The same examples in every run, and no limit of time for one: a busy machine must not fail a test.
settings.register_profile("merton", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("merton")


@pytest.fixture(scope="module")
def cell() -> SimulatedCell:
    """The embedded cell; files that need another `cell` have one of their own."""
    from merton.simulation.cell import SimulatedCell

    return SimulatedCell()


@pytest.fixture(scope="module")
def cameras(renders: None) -> Iterator[SceneCameras]:
    """What its cameras see."""
    from merton.simulation.cameras import SceneCameras

    made = SceneCameras()
    yield made
    made.close()
