"""A policy of the point world (`point_world.py`) that looks: it finds point and goal by their colours."""

from __future__ import annotations

import numpy as np

from merton.decision.models.base import Policy
from merton.errors import InputError, InvalidActionError
from merton.world.action import ActionChunk
from merton.world.observation import Observation

RED, GREEN = (200, 0, 0), (0, 160, 0)
FAR = 60.0
"""Distance of a pixel's colour from one of them, from which on it is another colour."""
ROWS, LONGEST = 3, 0.1


class PointSeer(Policy):
    """Goes three rows along the line from the red pixels to the green ones."""

    name = "point-seer"
    cameras = ("above",)

    def act(self, observation: Observation) -> ActionChunk:
        """Three equal rows; raises InvalidActionError if it cannot see one of the two."""
        self.require_views(observation)
        if observation.action is None:
            raise InputError("it acts in the point world alone")
        color = observation.views["above"].color.astype(float)
        places = []
        for wanted in (RED, GREEN):
            rows, columns = np.nonzero(np.linalg.norm(color - wanted, axis=2) < FAR)
            if not len(rows):
                raise InvalidActionError("the point or its goal is not in the picture")
            places.append(np.array([columns.mean(), rows.mean()]))
        towards = (places[1] - places[0]) / color.shape[0] * 2 * [1, -1]
        step = towards / max(np.abs(towards).max() / LONGEST, ROWS)
        return observation.action.chunk([step] * ROWS, self.name)
