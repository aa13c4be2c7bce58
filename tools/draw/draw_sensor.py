"""Draws what a sensor does to pictures, and its laws: `.venv/bin/python tools/draw/draw_sensor.py docs/images`.

`sensor.jpg` shows colour and depth of the cell's cameras in a bright and a dark scene, as rendered and as a D455 would
deliver them. `sensor.svg` compares the noise in pictures of even surfaces with the laws.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import cv2
import numpy as np

from merton.perception.camera import d455_intrinsics
from merton.seeding import generator
from merton.simulation import imaging, stereo
from merton.simulation import sensor as sensing
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.simulation.sensor import D455, IDEAL, Exposure, Sensor
from merton.world.observation import CameraView, Image, Intrinsics

TASK, SEED = "place", 3
SHARES_OF_LIGHT = (1.0, 1 / 8)
NEAR_M, FAR_M = 0.15, 1.8
"""Depths of the first and the last colour."""
LIGHT = 0.2
GAINS, WIDTHS = (1.0, 4.0, 16.0), (424, 640, 1280)
COLORS = ("#1b6ca8", "#c44e00", "#2b8a3e")
SIDE, LEFT, TOP, GAP = 300, 74, 34, 110
"""Of the two diagrams [px]."""


def photograph(path: Path) -> None:
    """Write colour and depth of all cameras: a row for each amount of light and sensor."""
    cell, cameras, rows = SimulatedCell(), SceneCameras(), []
    cell.reset(TASK, SEED)
    cameras.render(TASK, SEED, cell.qpos, cameras.names[0])  # makes the model of the task
    model = cameras._stage.model
    lights = model.light_diffuse, model.light_specular, model.vis.headlight.ambient, model.vis.headlight.diffuse
    full = [light.copy() for light in lights]
    for share in SHARES_OF_LIGHT:
        for light, given in zip(lights, full, strict=True):
            light[:] = share * given
        for sensor in (IDEAL, D455):
            cameras.imitate(sensor)
            views = (cameras.render(TASK, SEED, cell.qpos, camera) for camera in cameras.names)
            rows.append(np.hstack([tile for view in views for tile in (view.color, colored(view))]))
    cameras.close()
    whole = cv2.resize(np.vstack(rows), None, fx=0.6, fy=0.6, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(path), cv2.cvtColor(whole, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 88])


def colored(view: CameraView) -> Image:
    """Depth in colours: blue is near, red is far, black is none."""
    assert view.depth_m is not None
    share = np.clip((view.depth_m - NEAR_M) / (FAR_M - NEAR_M), 0, 1)
    picture = cv2.applyColorMap((255 * share).astype(np.uint8), cv2.COLORMAP_TURBO)[:, :, ::-1].copy()
    picture[view.depth_m == 0] = 0
    return picture


def noise(time_s: float, gain: float) -> tuple[float, float]:
    """Standard deviation of an even surface at full resolution: measured, and by the law."""
    lens, exposure = Intrinsics(400, 250, 640.0, 640.0, 199.5, 124.5), Exposure(time_s, gain)
    sensor = Sensor(shot_noise=True, read_noise=True)
    light = np.full((lens.height, lens.width, 3), LIGHT, np.float32)
    picture = imaging.exposed(sensor, light, lens, exposure, generator("figure", time_s, gain))
    electrons = LIGHT * exposure.brightness * sensing.FULL_WELL_E / gain
    variance = (electrons + sensing.READ_NOISE_E**2) * (gain / sensing.FULL_WELL_E) ** 2
    signal = LIGHT * exposure.brightness
    step = 2.4 / 1.055 * signal ** (1.4 / 2.4) / 255 if signal > 0.0031308 else 1 / 12.92 / 255  # of the 8 bits
    return float(imaging.linear(picture).std()), math.sqrt(variance + step**2 / 12)


def error(depth_m: float, width: int) -> tuple[float, float]:
    """Standard deviation of the depth of a wall [mm]: measured, and by the law."""
    lens = d455_intrinsics(width, width * 9 // 16)
    depth = np.full((lens.height, lens.width), depth_m, np.float32)
    picture = np.full((*depth.shape, 3), 128, np.uint8)
    seen = stereo.measured(Sensor(depth_noise=True), depth, picture, lens.fx, generator("figure", depth_m, width))
    return 1000 * float(seen[seen > 0].std()), 1000 * stereo.sigma_m(depth_m, lens.fx)


def diagram(
    left: float,
    title: str,
    x_axis: tuple[str, float, float, Iterable[float]],
    y_axis: tuple[str, float, float, Iterable[float]],
    series: dict[str, Callable[[float], tuple[float, float]]],
) -> list[str]:
    """A diagram with logarithmic axes (label, first, last, ticks): dots are measured, lines are the law."""
    (x_label, x0, x1, x_ticks), (y_label, y0, y1, y_ticks) = x_axis, y_axis

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + SIDE * math.log(x / x0) / math.log(x1 / x0),
            TOP + SIDE * (1 - math.log(y / y0) / math.log(y1 / y0)),
        )

    def text(x: float, y: float, words: str, anchor: str = "middle", more: str = 'fill="#333"') -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{words}</text>'

    parts = [text(left + SIDE / 2, TOP - 14, title), text(left + SIDE / 2, TOP + SIDE + 42, x_label)]
    middle = left - 52, TOP + SIDE / 2
    parts.append(text(*middle, y_label, more=f'fill="#333" transform="rotate(-90 {middle[0]:.1f} {middle[1]:.1f})"'))
    for tick in x_ticks:
        x, y = at(tick, y0)
        parts += [f'<path d="M{x:.1f} {TOP}v{SIDE}" stroke="#ddd"/>', text(x, y + 20, f"{tick:g}")]
    for tick in y_ticks:
        x, y = at(x0, tick)
        parts += [f'<path d="M{x:.1f} {y:.1f}h{SIDE}" stroke="#ddd"/>', text(x - 8, y + 4, f"{tick:g}", "end")]
    for color, (name, both) in zip(COLORS, series.items(), strict=True):
        xs = np.geomspace(x0, x1, 9)[1:-1]
        pairs = [both(float(x)) for x in xs]
        line = " ".join("{:.1f},{:.1f}".format(*at(x, law)) for x, (_, law) in zip(xs, pairs, strict=True))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for x, (measured, _) in zip(xs, pairs, strict=True):
            parts.append('<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"/>'.format(*at(x, measured), color))
        x, y = at(xs[-1], pairs[-1][1])
        parts.append(text(x + 8, y + 4, name, "start", f'fill="{color}"'))
    return parts


def plot(path: Path) -> None:
    """Write both laws beside each other."""
    times: dict[str, Callable[[float], tuple[float, float]]] = {
        f"gain {gain:g}": lambda time_ms, gain=gain: noise(time_ms / 1000, gain) for gain in GAINS
    }
    depths: dict[str, Callable[[float], tuple[float, float]]] = {
        f"{width} px": lambda depth_m, width=width: error(depth_m, width) for width in WIDTHS
    }
    x_time = "exposure [ms]", 1.5, 50.0, (2, 5, 10, 20, 50)
    y_noise = "noise [share of the largest signal]", 5e-4, 5e-2, (5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2)
    x_depth = "distance [m]", 0.5, 6.0, (0.5, 1, 2, 4, 6)
    y_error = "error of depth [mm]", 0.3, 100.0, (0.3, 1, 3, 10, 30, 100)
    second = LEFT + SIDE + GAP + 30
    width, height = second + SIDE + 70, TOP + SIDE + 60
    parts = [f'<rect width="{width}" height="{height}" fill="#fff"/>']
    parts += diagram(LEFT, f"Colour: a surface of light {LIGHT:g} at 1280 px", x_time, y_noise, times)
    parts += diagram(second, "Depth: a wall", x_depth, y_error, depths)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
    head += 'font-size="12">'
    path.write_text(head + "".join(parts) + "</svg>\n")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    photograph(folder / "sensor.jpg")
    plot(folder / "sensor.svg")
