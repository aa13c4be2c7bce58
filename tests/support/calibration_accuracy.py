"""The numbers of docs/lab/calibration.md: how far calibrations are from the truth. Not a test; takes some minutes."""

from __future__ import annotations

import numpy as np
from board_renderer import BoardRenderer
from calibration_rig import rig
from numpy.typing import NDArray
from scipy.optimize import least_squares

from merton.calibration import CharucoBoard, Lens, calibrate
from merton.calibration.problem import Problem
from merton.perception.camera import d455_intrinsics
from merton.perception.distortion import distort
from merton.world.geometry import Matrix, inverse, rotation_vector_of

D455 = (-0.055, 0.065, 0.0004, -0.0006, -0.02)
SIZES = ((1280, 720), (640, 480), (424, 240))
DISTANCE_M = {"wrist": (0.35, 0.55), "top": (0.45, 0.7), "side": (0.45, 0.7)}
NOISE_DEG = (0.0, 0.02, 0.1)
RUNS = 8


def gap(found: Matrix, truth: Matrix) -> tuple[float, float]:
    """Distance [mm] and angle [deg] between two poses."""
    difference = inverse(truth) @ found
    turned = np.degrees(np.linalg.norm(rotation_vector_of(difference)))
    return 1000 * float(np.linalg.norm(difference[:3, 3])), float(turned)


def text(errors: list[tuple[float, float]]) -> str:
    """Root mean square and worst, as cells of a table."""
    array: NDArray[np.float64] = np.array(errors)
    middle, worst = np.sqrt(np.mean(array**2, axis=0)), array.max(axis=0)
    return f"{middle[0]:.2f} mm, {middle[1]:.3f} deg | {worst[0]:.2f} mm, {worst[1]:.3f} deg"


def main() -> None:
    """Print the rows."""
    board = CharucoBoard()
    for size in SIZES:
        lens = Lens(d455_intrinsics(*size), D455)
        renderer = BoardRenderer(board, lens.intrinsics, D455)
        for camera, distance_m in DISTANCE_M.items():
            for noise_deg in NOISE_DEG if size == SIZES[0] else NOISE_DEG[1:2]:
                ours, plain, lost = [], [], 0
                for seed in range(RUNS):
                    rng = np.random.default_rng(seed)
                    taken = rig(camera, lens, rng, distance_m=distance_m, noise_rad=np.radians(noise_deg))
                    width_px = lens.intrinsics.width
                    images = [
                        distort(renderer.render(view), "white_noise", 2, rng, reference_width_px=width_px)
                        for view in taken.camera_from_board
                    ]
                    seen = [board.find(image, str(number)) for number, image in enumerate(images)]
                    used = [number for number, item in enumerate(seen) if item]
                    lost += len(seen) - len(used)
                    sightings, poses = [seen[number] for number in used], list(taken.base_from_tool0[used])
                    result = calibrate(sightings, poses, lens, taken.parent)
                    ours.append(gap(result.parent_from_camera, taken.parent_from_camera))
                    problem = Problem(sightings, poses, lens, taken.parent)
                    x = least_squares(lambda x, p=problem: p.offsets_px(x).ravel(), problem.start(), x_scale="jac").x
                    plain.append(gap(problem.transforms(x)[0], taken.parent_from_camera))
                name = f"{camera}, {size[0]} x {size[1]}, {noise_deg:g} deg"
                print(f"| {name} | {text(ours)} | {text(plain).split(' | ')[0]} | {lost}", flush=True)


if __name__ == "__main__":
    main()
