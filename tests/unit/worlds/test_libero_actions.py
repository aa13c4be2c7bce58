"""LIBERO's actions are Merton's rows forward and back."""

import numpy as np
import pytest

from merton.decision.models.conventions import CONVENTIONS
from merton.worlds.hosted import libero_actions

GRID = np.linspace(-1.0, 1.0, 9)


def rows_of(actions):
    return CONVENTIONS.get("libero_env").chunk(actions).deltas


def test_an_action_is_the_same_after_the_convention_and_back():
    actions = np.array([np.roll(np.append(GRID[:6], gripper), shift) for gripper in GRID for shift in range(7)])
    back = np.array([libero_actions.native(row) for row in rows_of(actions)])
    np.testing.assert_allclose(back, actions, rtol=0, atol=1e-15)


def test_an_action_beyond_the_range_is_clipped_as_the_convention_clips_it():
    actions = np.array([[1.7, -3, 0.2, 9, -9, 0.1, 1], [-1.2, 0, 1, -1.01, 2, 0, -1]])
    back = np.array([libero_actions.native(row) for row in rows_of(actions)])
    np.testing.assert_allclose(back, np.clip(actions, -1, 1), rtol=0, atol=1e-15)


def test_a_row_beyond_the_limits_is_clipped():
    row = np.array([0.2, -0.06, 0.05, 0.6, -0.25, 0, 1.0])
    assert libero_actions.native(row).tolist() == [1, -1, 1, 1, -0.5, 0, -1]


def test_the_way_back_is_the_one_of_the_convention():
    actions = np.array([[0.3, -0.7, 1, -0.1, 0.25, 2, -1], [0, 0, 0, 0, 0, 0, 1]], float)
    np.testing.assert_allclose([libero_actions.merton(action) for action in actions], rows_of(actions), atol=1e-15)


@pytest.mark.parametrize(("gripper_open", "native"), [(0.0, 1.0), (1.0, -1.0), (0.5, 0.0)])
def test_minus_one_opens_and_one_closes(gripper_open, native):
    assert libero_actions.native([0, 0, 0, 0, 0, 0, gripper_open])[6] == native


def test_the_spread_is_the_one_of_the_demonstrations():
    spreads = {column["name"]: column["spread"] for column in libero_actions.columns()}
    assert spreads["x"] == pytest.approx((0.9375 + 0.7454732114) * 0.05, abs=1e-4)
    assert spreads["rotation y"] == pytest.approx((0.2067857087 + 0.1767857075) * 0.5, abs=1e-4)
    assert spreads["gripper"] == 1.0
