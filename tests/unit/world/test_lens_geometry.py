"""The pinhole camera: pixels, points and back, one by one and in arrays."""

from __future__ import annotations

import numpy as np

from merton.world.observation import Intrinsics

LENS = Intrinsics(424, 240, 254.4, 255.1, 211.5, 119.5)


def test_points_of_pixels_are_seen_at_these_pixels() -> None:
    rng = np.random.default_rng(3)
    u, v, depth_m = rng.uniform(0, 424, (7, 5)), rng.uniform(0, 240, (7, 5)), rng.uniform(0.2, 2.0, (7, 5))
    points = LENS.deproject(u, v, depth_m)
    assert points.shape == (7, 5, 3)
    assert points.dtype == np.float64
    for place in np.ndindex(7, 5):
        np.testing.assert_array_equal(LENS.deproject(u[place], v[place], depth_m[place]), points[place])
        np.testing.assert_allclose(LENS.project(points[place]), [u[place], v[place]], rtol=1e-12)
        assert points[place][2] == depth_m[place]


def test_depth_of_a_camera_is_calculated_with_in_double_precision() -> None:
    point = LENS.deproject(100, 50, np.float32(0.7))
    assert point[0] == (100 - 211.5) / 254.4 * float(np.float32(0.7))
