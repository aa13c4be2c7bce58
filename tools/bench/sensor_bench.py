"""Processor time of the sensor's parts, for `bench.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from timing import seconds

from merton.seeding import generator
from merton.simulation import imaging, stereo
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.sensor import AS_RENDERED, D455, IDEAL, Sensor

DEPTH_PARTS = ("depth_noise", "quantised_disparity", "occlusion", "nearest_distance", "difficult_surfaces")
SPEED_RAD_S = 0.1
"""Of each joint, for pictures in motion."""


def sensors() -> dict[str, dict[str, float]]:
    """Milliseconds of processor time, all threads, for one picture of the top camera: rendering, and what each adds.

    Parts of depth share the conversion to disparities and back; a part is what its flag adds to that.
    """
    cell = SimulatedCell()
    cell.reset("pick", 0)
    result = {}
    for width, height in ((424, 240), (640, 480), (1280, 720)):
        cameras = SceneCameras(width, height)
        result[f"{width}x{height}"] = {name: round(ms, 2) for name, ms in parts(cell, cameras).items()}
        cameras.close()
    return result


def parts(cell: SimulatedCell, cameras: SceneCameras) -> dict[str, float]:
    """The same for cameras of one size."""
    rng, lens = generator("bench"), cameras.intrinsics
    view = cameras.render("pick", 0, cell.qpos, "top")
    light = imaging.linear(view.color)
    assert view.depth_m is not None
    depth_m = view.depth_m

    def ms(work: Callable[[], Any]) -> float:
        return 1e3 * seconds(work, 25, time.process_time)

    def exposed(sensor: Sensor) -> float:
        return ms(lambda: imaging.exposed(sensor, light, lens, AS_RENDERED, rng))

    def measured(sensor: Sensor) -> float:
        return ms(lambda: stereo.measured(sensor, depth_m, view.color, lens.fx, rng))

    def rendered(sensor: Sensor, **options: Any) -> float:
        cameras.imitate(sensor)
        return ms(lambda: cameras.render("pick", 0, cell.qpos, "top", **options))

    ideal = rendered(IDEAL)
    plain, bare = exposed(IDEAL), measured(IDEAL)
    found = {
        "rendering_color_and_depth": ideal,
        "d455_adds": rendered(D455) - ideal,
        "d455_moving_adds": rendered(D455, joint_velocities=[SPEED_RAD_S] * 6) - ideal,
        "to_light": ms(lambda: imaging.linear(view.color)),
        "auto_exposure": ms(lambda: imaging.mean_light(light)),
        "lens_blur": ms(lambda: imaging.blurred(light, lens)),
        "from_light": plain,
        "noise": exposed(Sensor(shot_noise=True, read_noise=True)) - plain,
        "vignetting": exposed(Sensor(vignetting=True)) - plain,
        "disparity_and_back": bare,
    }
    return found | {part: measured(replace(IDEAL, **{part: True})) - bare for part in DEPTH_PARTS}
