"""`merton calibrate`: a board to print, and a camera's place from pictures of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from merton.cli.console import STDOUT, print_out
from merton.cli.tree import App
from merton.errors import InputError

if TYPE_CHECKING:
    from merton.calibration import Calibration, LensCheck
    from merton.world.cell import CellConfig
    from merton.world.geometry import Matrix

AHEAD_M = 0.5
"""Distance of the point `look_at` from the camera [m], straight ahead."""

app = App("Find where a camera stands, with a ChArUco board; see docs/lab/calibration.md.")
_Columns = Annotated[int, typer.Option(help="Squares across.")]
_Rows = Annotated[int, typer.Option(help="Squares down.")]
_Square = Annotated[float, typer.Option("--square-mm", help="Edge of a square [mm], as measured on the paper.")]


@app.command("board")
def board_command(
    output: Annotated[Path, typer.Option("-o", "--out", help="A .pdf or .png file.")],
    columns: _Columns = 7,
    rows: _Rows = 5,
    square_mm: _Square = 36.0,
) -> None:
    """Write a board for the printer, in exact size."""
    from merton.calibration import CharucoBoard, write_sheet

    board = CharucoBoard(columns, rows, square_mm / 1000)
    page = write_sheet(board, output)
    print_out(f"{output}: {board}, on {page}. Print at 100 %, and measure the squares.")


@app.command("solve")
def solve_command(
    folder: Annotated[Path, typer.Argument(help="Pictures, poses.csv and camera.yaml.")],
    camera: Annotated[str, typer.Option(help="Name of the camera in config/cell.yaml.")],
    output: Annotated[Path | None, typer.Option("-o", "--out", help="Where to write the lines for cell.yaml.")] = None,
    columns: _Columns = 7,
    rows: _Rows = 5,
    square_mm: _Square = 36.0,
) -> None:
    """Compute a camera's place from a folder of pictures, and say how far it is from the present one."""
    from merton import calibration
    from merton.execution.kinematics import kinematics_of
    from merton.perception.camera import d455_intrinsics
    from merton.world.cell import load_cell

    cell = load_cell()
    present = cell.camera(camera)
    board = calibration.CharucoBoard(columns, rows, square_mm / 1000)
    shots = calibration.read_poses(folder, cell.arm, kinematics_of(cell).forward)
    seen = calibration.find_board(board, [file for file, _ in shots])
    used = [(sighting, pose) for sighting, (_, pose) in zip(seen, shots, strict=True) if sighting is not None]
    sightings, poses = [sighting for sighting, _ in used], [pose for _, pose in used]
    lens = calibration.read_lens(folder)
    warnings = []
    if lens is None:
        lens = calibration.Lens(d455_intrinsics(*sightings[0].size_px))
        warnings.append("there is no camera.yaml: the optics are those of the data sheet")
    result = calibration.calibrate(sightings, poses, lens, present.parent)
    warnings.append(calibration.check_place(result.parent_from_camera, camera, cell))
    check = calibration.check_lens(sightings, lens)
    if missing := [file.name for sighting, (file, _) in zip(seen, shots, strict=True) if sighting is None]:
        warnings.append(f"the board was not found in {', '.join(missing)}")
    lines = camera_yaml(camera, result.parent, result.parent_from_camera)
    output = output or folder / f"{camera}_pose.yaml"
    try:
        output.write_text(lines, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {str(output)!r}: {error.strerror}") from None
    _show(camera, result, check, [*warnings, *result.warnings, check.warning], cell)
    print_out(f"For the section `cameras` of config/cell.yaml, in {output}:")
    STDOUT.print(lines, end="", markup=False, highlight=False, soft_wrap=True)


def camera_yaml(camera: str, parent: str, parent_from_camera: Matrix) -> str:
    """A camera's place as a line of `config/cell.yaml`, to a micrometre."""
    position, axes = parent_from_camera[:3, 3], parent_from_camera[:3, :3]
    points = {"look_from": position, "look_at": position + AHEAD_M * axes[:, 2], "up": -axes[:, 1]}
    # adding zero takes the sign off a zero
    texts = [f"{key}: [{', '.join(f'{round(float(v), 6) + 0.0:.6f}' for v in value)}]" for key, value in points.items()]
    return f"{camera}: {{parent: {parent}, {', '.join(texts)}}}\n"


def _show(camera: str, result: Calibration, check: LensCheck, warnings: list[str], cell: CellConfig) -> None:
    import numpy as np

    from merton.world.geometry import inverse, rotation_vector_of

    table = Table("picture", "corners px", "place mm", "angle deg", "", box=None)
    for pose in result.poses:
        cells = (f"{pose.error_px:.2f}", f"{1000 * pose.position_m:.2f}", f"{np.degrees(pose.angle_rad):.3f}")
        table.add_row(escape(pose.name), *cells, "left out" if pose.left_out else "")
    STDOUT.print(table)
    moved = inverse(cell.camera(camera).parent_from_camera) @ result.parent_from_camera
    distance_mm, angle_deg = 1000 * np.linalg.norm(moved[:3, 3]), np.degrees(np.linalg.norm(rotation_vector_of(moved)))
    place = ", ".join(f"{value:.4f}" for value in result.parent_from_camera[:3, 3])
    deviation = (
        f", give or take {1000 * result.position_deviation_m:.2f} mm and "
        f"{np.degrees(result.angle_deviation_rad):.3f} deg (one standard deviation)"
        if np.isfinite(result.position_deviation_m)
        else "; how well is not known from three pictures"
    )
    focal_px = f"{check.fitted.intrinsics.fx:.1f}"
    if np.isfinite(check.focal_deviation_px[0]):
        focal_px += f" +- {check.focal_deviation_px[0]:.1f}"
    lines = [
        f"{camera} stands at ({place}) m in {result.parent}{deviation}.",
        f"That is {distance_mm:.1f} mm and {angle_deg:.2f} deg from where config/cell.yaml has it.",
        f"Corners are off by {result.error_px:.2f} px; squares fit best at {result.board_scale:.4f} times their size.",
        f"Optics: {check.given_px:.2f} px of error as given, {check.fitted_px:.2f} px with the focal length that fits "
        f"best, {focal_px} px.",
    ]
    for line in lines:
        print_out(line)
    for warning in filter(None, warnings):
        STDOUT.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False, soft_wrap=True)
