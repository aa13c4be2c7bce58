"""Draws docs/lab/gripper.md's figures: `.venv/bin/python tools/draw/draw_gripper.py docs/images`."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import mujoco
import numpy as np

from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world import linkage

OPENINGS_M = (0.140, 0.060, 0.0)
DRAWN_M = ((0.0, 0.2328), (0.140, 0.2098))
"""Opening and overall length in Robotiq's drawing."""
LEFT, TOP, WIDTH, HEIGHT = 70, 20, 520, 260
LOW_MM, HIGH_MM, STROKE_MM = 205, 237, 140


def photograph(path: Path) -> None:
    """Write the embedded cell's gripper with a linkage, at three openings side by side."""
    cell, tiles = SimulatedCell(linkage=True), []
    cell.reset("reach", 0)
    view = mujoco.MjvCamera()
    view.type = mujoco.mjtCamera.mjCAMERA_FREE.value
    view.lookat[:] = cell.base_from_tcp[:3, 3] + (0, 0, 0.11)
    view.distance, view.azimuth, view.elevation = 0.50, 180.0, -4.0
    cameras = SceneCameras(480, 400, shadows=True, samples=8, linkage=True)
    for opening_m in OPENINGS_M:
        cell.command_gripper(opening_m)
        cell.advance(10.0)
        tile = cameras.look("reach", 0, cell.qpos, view)
        tile = cv2.copyMakeBorder(tile, 0, 0, 0, 4, cv2.BORDER_CONSTANT, value=(255, 255, 255))
        text = f"{1000 * opening_m:.0f} mm open: tips at {1000 * linkage.tip_height_m(opening_m):.1f} mm"
        cv2.putText(tile, text, (10, 388), cv2.FONT_HERSHEY_SIMPLEX, 0.55, (20, 20, 20), 1, cv2.LINE_AA)
        tiles.append(tile)
    cameras.close()
    cv2.imwrite(str(path), cv2.cvtColor(np.hstack(tiles), cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 85])


def plot(path: Path) -> None:
    """Write the height of the tips over the opening."""

    def at(opening_m: float, height_m: float) -> tuple[float, float]:
        x = LEFT + WIDTH * 1000 * opening_m / STROKE_MM
        return x, TOP + HEIGHT * (HIGH_MM - 1000 * height_m) / (HIGH_MM - LOW_MM)

    def label(x: float, y: float, text: str, anchor: str = "middle", color: str = "#333") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{text}</text>'

    parts = [f'<rect width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 60}" fill="#fff"/>']
    for mm in range(LOW_MM, HIGH_MM, 5):
        x, y = at(0, mm / 1000)
        parts += [f'<path d="M{x} {y:.1f}h{WIDTH}" stroke="#ddd"/>', label(x - 8, y + 4, str(mm), "end")]
    for mm in range(0, STROKE_MM + 1, 20):
        x, _ = at(mm / 1000, 0)
        parts.append(label(x, TOP + HEIGHT + 18, str(mm)))
    parts.append(label(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "opening between the pads [mm]"))
    parts.append(
        f'<text transform="translate(18 {TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle" fill="#333">'
        "base of the gripper to its tips [mm]</text>"
    )
    points = " ".join("{:.1f},{:.1f}".format(*at(o, linkage.tip_height_m(o))) for o in np.linspace(0, 0.14, 71))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#0b5fa5" stroke-width="2.5"/>')
    (x, y), (end, _) = at(0, linkage.CLOSED_LENGTH_M), at(0.14, 0)
    parts.append(f'<path d="M{x} {y:.1f}H{end}" stroke="#b25d00" stroke-width="2" stroke-dasharray="6 5"/>')
    parts.append(label(end - 6, y - 8, "sliding fingers", "end", "#b25d00"))
    parts.append(label(*at(0.072, 0.2235), "linkage of the 2F-140", "end", "#0b5fa5"))
    for point in DRAWN_M:
        x, y = at(*point)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="none" stroke="#111" stroke-width="1.5"/>')
    x, y = at(0.137, 0.2098)
    parts.append(label(x - 6, y + 4, "circles: the manufacturer's drawing", "end"))
    size = f'viewBox="0 0 {LEFT + WIDTH + 30} {TOP + HEIGHT + 60}" font-family="sans-serif" font-size="13"'
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>\n', encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    photograph(folder / "gripper.jpg")
    plot(folder / "gripper_height.svg")
