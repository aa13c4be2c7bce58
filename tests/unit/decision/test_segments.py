"""Words as numbers, and motions as straight segments, as the learned policies have them."""

from __future__ import annotations

import numpy as np
import pytest

from merton.decision.models.segments import SEGMENT_SIZE, SEGMENTS, SLOTS, from_deltas, to_deltas, tokens
from merton.experiment.local import LocalPorts
from merton.world.tasks import TASKS

START = np.array([0.45, 0.0, 0.30])


@pytest.fixture(scope="module")
def ports(renders: None) -> LocalPorts:
    """One cell for all tests."""
    return LocalPorts()


@pytest.mark.parametrize("task", TASKS)
def test_segments_represent_every_motion_of_the_oracle(ports: LocalPorts, task: str) -> None:
    instruction = ports.reset(task, 3)
    view = ports.view()
    chunk = ports.act("oracle", view.observation("reference", instruction), "reference")
    segments = from_deltas(chunk.deltas, view.base_from_tcp[:3, 3])
    assert len(segments) <= SEGMENTS
    assert to_deltas(segments, view.base_from_tcp[:3, 3]) == pytest.approx(chunk.deltas, abs=1e-9)


def test_segments_end_with_the_motion() -> None:
    segments = np.zeros((3, SEGMENT_SIZE))
    segments[:, :3] = [[0.45, 0.1, 0.3], [0.45, 0.1, 0.2], [9, 9, 9]]
    segments[:, 6] = (1.7, -0.2, 0.5)
    segments[:, 7] = (np.log(2), -3.0, 0.0)
    segments[:, 8] = (1.0, 0.1, -0.1)
    deltas = to_deltas(segments, START)
    assert deltas == pytest.approx(np.array([[0, 0.05, 0, 0, 0, 0, 1]] * 2 + [[0, 0, -0.1, 0, 0, 0, 0]]))
    assert to_deltas(segments[2:], START).shape == (0, 7)


def test_words_become_numbers() -> None:
    words = ("cube", "pick", "red", "the", "up")
    assert tokens("Pick up the RED cube.", words).tolist() == [3, 6, 5, 4, 2] + [0] * 11
    assert tokens("pick a cube", words)[:4].tolist() == [3, 1, 2, 0]
    assert len(tokens("the " * 40, words)) == SLOTS
