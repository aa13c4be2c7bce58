"""The board on paper: a page that a printer reproduces in its exact size."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.calibration.charuco import MODULES, CharucoBoard
from merton.errors import InputError

PAGES_MM = {"A4": (297.0, 210.0), "A3": (420.0, 297.0)}
MARGIN_MM = 14.0
"""White around the board: its outer squares are black, and the caption stands below."""
RULE_MM = 100.0
"""A line to hold a ruler against."""

_PIXELS_PER_MODULE = 40
_POINTS_PER_MM = 72 / 25.4
_TEXT_MM, _BASELINE_MM = 3.0, 5.0


def write_sheet(board: CharucoBoard, path: Path) -> str:
    """Write a page with the board and a line of 100 mm; returns the page's size, such as "A4, 297 x 210 mm".

    Args:
        path: a .pdf (outlines, exact at any resolution) or a .png (with its resolution in it). A board too large for A4
            and A3 gets a page that fits it.

    Raises:
        InputError: another kind of file, or one that cannot be written.
    """
    kinds = {".pdf": _pdf, ".png": _png}
    if path.suffix.lower() not in kinds:
        raise InputError(f"cannot write a board as {path.suffix or path.name!r}; choose one of: {', '.join(kinds)}")
    width, height = (1000 * length for length in board.size_m)
    name, page = "its own size", (width + 2 * MARGIN_MM, height + 2 * MARGIN_MM)
    for candidate, size in PAGES_MM.items():
        if width + 2 * MARGIN_MM <= size[0] and height + 2 * MARGIN_MM <= size[1]:
            name, page = candidate, size
            break
    try:
        path.write_bytes(kinds[path.suffix.lower()](board, page))
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return f"{name}, {page[0]:g} x {page[1]:g} mm"


def _caption(board: CharucoBoard) -> str:
    return f"Merton, {board}. Print at 100 %; the line is {RULE_MM:g} mm long."


def _pdf(board: CharucoBoard, page_mm: tuple[float, float]) -> bytes:
    """One page of filled rectangles and a line of text (PDF 1.4, ISO 32000: lengths in points, y up)."""
    module = 1000 * board.square_m / MODULES
    left, bottom = ((side - 1000 * length) / 2 for side, length in zip(page_mm, board.size_m, strict=True))
    shapes = [(left, _BASELINE_MM + _TEXT_MM + 0.7, RULE_MM, 0.3)]
    rows = len(board.pattern)
    for row, line in enumerate(board.pattern):
        shapes += [
            (left + start * module, bottom + (rows - 1 - row) * module, (end - start) * module, module)
            for start, end in _runs(line == 0)
        ]
    drawing = [" ".join(f"{_POINTS_PER_MM * value:.4f}" for value in shape) + " re" for shape in shapes]
    place = f"{_POINTS_PER_MM * left:.4f} {_POINTS_PER_MM * _BASELINE_MM:.4f}"
    text = f"BT /F1 {_POINTS_PER_MM * _TEXT_MM:.4f} Tf {place} Td ({_caption(board)}) Tj ET"
    content = "\n".join(["0 g", *drawing, "f", text]).encode("ascii")
    size = " ".join(f"{_POINTS_PER_MM * side:.4f}" for side in page_mm)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size}] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>".encode("ascii"),
        f"<< /Length {len(content)} >>\nstream\n".encode("ascii") + content + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    file, places = b"%PDF-1.4\n", []
    for number, item in enumerate(objects, start=1):
        places.append(len(file))
        file += f"{number} 0 obj\n".encode("ascii") + item + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return file + f"{end}startxref\n{len(file)}\n%%EOF\n".encode("ascii")


def _png(board: CharucoBoard, page_mm: tuple[float, float]) -> bytes:
    """The page in pixels, a whole number of them per module, with the length of a pixel in a pHYs chunk."""
    pixels_per_mm = _PIXELS_PER_MODULE / (1000 * board.square_m / MODULES)
    width, height = (round(side * pixels_per_mm) for side in page_mm)
    page = np.full((height, width), 255, np.uint8)
    drawn = np.kron(board.pattern, np.ones((_PIXELS_PER_MODULE, _PIXELS_PER_MODULE), np.uint8))
    top, left = (height - drawn.shape[0]) // 2, (width - drawn.shape[1]) // 2
    page[top : top + drawn.shape[0], left : left + drawn.shape[1]] = drawn
    line = height - round((_BASELINE_MM + _TEXT_MM + 1.0) * pixels_per_mm)
    page[line : line + max(1, round(0.3 * pixels_per_mm)), left : left + round(RULE_MM * pixels_per_mm)] = 0
    base = (left, height - round(_BASELINE_MM * pixels_per_mm))
    scale = _TEXT_MM * pixels_per_mm / 22  # capitals of this font are 22 pixels high
    cv2.putText(page, _caption(board), base, cv2.FONT_HERSHEY_SIMPLEX, scale, 0, max(1, round(2 * scale)), cv2.LINE_AA)
    encoded = cv2.imencode(".png", page)[1].tobytes()
    after_header = 8 + 25  # signature, then IHDR
    per_metre = round(1000 * pixels_per_mm)
    chunk = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    resolution = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return encoded[:after_header] + resolution + encoded[after_header:]


def _runs(black: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(start, end) of the stretches that are true."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], black.astype(np.int8), [0]))))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
