"""Simulated time passes on demand, and stands once every source has reported the instant."""

from __future__ import annotations

import numpy as np
import pytest

from merton_nodes.cell.lockstep import Lockstep

PERIOD_NS, SLICE_NS = 100_000_000, 20_000_000
SOURCES = ("joints", "red cube", "blue cube")


@pytest.fixture
def ends() -> list[int]:
    """The instants up to which the simulator was told to run [ns]."""
    return []


@pytest.fixture
def time(ends: list[int]) -> Lockstep:
    lockstep = Lockstep(ends.append, PERIOD_NS, SLICE_NS, "joints")
    lockstep.expect(SOURCES)
    lockstep.engaged = True
    lockstep.stamp_ns = 1_002_000_000
    lockstep.run_for(0.25)
    assert ends == [1_300_000_000]
    return lockstep


@pytest.mark.parametrize("seed", range(10))
def test_time_stands_once_the_last_source_has_reported(time: Lockstep, seed: int) -> None:
    for source in SOURCES:
        assert not time.update(source, 1_250_000_000)
    order = np.random.default_rng(seed).permutation(SOURCES).tolist()
    assert [time.update(source, 1_300_000_000) for source in order] == [False, False, True]
    assert time.stands
    assert not any(time.update(source, 1_300_000_000) for source in SOURCES), "it ends once"


def test_a_lost_report_of_an_earlier_instant_does_no_harm(time: Lockstep) -> None:
    assert [time.update(source, 1_300_000_000) for source in SOURCES] == [False, False, True]


def test_more_time_may_be_asked_for_while_it_passes(time: Lockstep, ends: list[int]) -> None:
    time.update("joints", 1_200_000_000)
    time.run_for(0.05)
    assert ends == [1_300_000_000], "it runs that long anyway"
    time.run_for(0.35)
    assert ends == [1_300_000_000], "more once it has got there"
    assert not any(time.update(source, 1_300_000_000) for source in SOURCES), "the end is another one now"
    while ends[-1] < 1_600_000_000:
        time.update("joints", ends[-1])
    assert [time.update(source, 1_600_000_000) for source in SOURCES] == [False, False, True]


def test_time_passes_in_slices_each_after_the_report_of_the_one_before(time: Lockstep, ends: list[int]) -> None:
    """So the controllers in the simulator, which get the time by messages, are never far behind."""
    assert [time.update(source, 1_300_000_000) for source in SOURCES] == [False, False, True]
    time.run_for(0.0)
    for end_ns in range(1_320_000_000, 1_400_000_000, SLICE_NS):
        assert ends[-1] == end_ns
        for source in SOURCES[1:]:
            assert not time.update(source, end_ns)
        assert not time.update("joints", end_ns - 2_000_000)
        assert ends[-1] == end_ns, "the first source sets the pace, at the end of the slice"
        assert not time.update("joints", end_ns)
    assert ends[-1] == 1_400_000_000
    assert [time.update(source, 1_400_000_000) for source in SOURCES] == [False, False, True]
    assert ends[-1] == 1_400_000_000


def test_a_simulator_that_ran_freely_is_given_an_end_that_lies_ahead(ends: list[int]) -> None:
    time = Lockstep(ends.append, PERIOD_NS, SLICE_NS, "joints")
    time.expect(SOURCES)
    assert not time.update("joints", 7_654_000_000)
    assert not ends, "not engaged yet"
    time.engaged = True
    assert not time.update("joints", 7_656_000_000)
    assert ends == [8_200_000_000]


def test_time_that_is_held_passes_after_its_release(time: Lockstep, ends: list[int]) -> None:
    assert [time.update(source, 1_300_000_000) for source in SOURCES] == [False, False, True]
    time.held = True
    time.run_for(0.0)
    assert not time.update("joints", 1_300_000_000)
    assert ends == [1_300_000_000]
    time.release()
    assert ends == [1_300_000_000, 1_320_000_000]


def test_the_release_of_time_that_stands_runs_nothing(time: Lockstep, ends: list[int]) -> None:
    for source in SOURCES:
        time.update(source, 1_300_000_000)
    time.held = True
    time.release()
    assert time.stands
    assert ends == [1_300_000_000]
