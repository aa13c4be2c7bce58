"""A Gazebo whose time should pass and does not is found, and its node ends."""

from __future__ import annotations

import types
from typing import Any

import pytest
from rclpy.logging import get_logger

from merton.graph.supervisor import RENEW_CODE
from merton_nodes.cell import gazebo_watch
from merton_nodes.cell.gazebo_watch import GazeboWatch
from merton_nodes.cell.lockstep import Lockstep

PERIOD_NS, SLICE_NS, PATIENCE_S = 100_000_000, 20_000_000, 120.0


class Bench:
    """A watch over a time in which only the test lets wall time pass."""

    def __init__(self) -> None:
        self.now_s, self.ended = 1000.0, False
        self.time = Lockstep(lambda _: None, PERIOD_NS, SLICE_NS, "joints")
        self.time.expect(["joints"])
        context = types.SimpleNamespace(try_shutdown=self.end)
        logger = get_logger("test")
        self.node: Any = types.SimpleNamespace(
            create_timer_s=lambda *_: None, get_logger=lambda: logger, context=context, exit_code=1
        )

    def end(self) -> None:
        self.ended = True

    def wait(self, duration_s: float) -> None:
        for _ in range(round(duration_s)):
            self.now_s += 1.0
            self.watch.check()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    monkeypatch.setattr(gazebo_watch, "wall", types.SimpleNamespace(monotonic=lambda: bench.now_s))
    bench.watch = GazeboWatch(bench.node, bench.time, PATIENCE_S)
    bench.time.engaged = True
    bench.time.stamp_ns = 1_002_000_000
    bench.time.run_for(0.0)
    return bench


def test_a_time_that_should_pass_and_stands_ends_the_node(bench: Bench) -> None:
    bench.wait(PATIENCE_S)
    assert not bench.ended
    bench.wait(2)
    assert bench.ended
    assert bench.node.exit_code == RENEW_CODE


def test_every_step_is_progress(bench: Bench) -> None:
    for stamp_ns in range(1_004_000_000, 1_020_000_000, 2_000_000):
        bench.wait(PATIENCE_S - 1)
        bench.time.update("joints", stamp_ns)
    assert not bench.ended


def test_a_time_that_rests_or_runs_freely_may_stand(bench: Bench) -> None:
    bench.time.update("joints", 1_100_000_000)
    assert bench.time.stands
    bench.wait(2 * PATIENCE_S)
    bench.time.engaged = False
    bench.wait(2 * PATIENCE_S)
    assert not bench.ended


def test_a_time_that_waits_for_frames_which_do_not_come_ends_the_node(bench: Bench) -> None:
    bench.time.update("joints", 1_100_000_000)
    bench.time.held = True
    bench.wait(PATIENCE_S + 2)
    assert bench.ended
