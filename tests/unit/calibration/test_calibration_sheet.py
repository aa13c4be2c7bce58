"""The printed board: a page in exact size."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from merton.calibration import CharucoBoard, write_sheet
from merton.errors import InputError


@pytest.mark.parametrize("square_mm", [36.0, 50.0, 120.0])
def test_the_sheet_has_the_board_in_exact_size(tmp_path: Path, square_mm: float) -> None:
    """The PDF's rectangles and the PNG's pixels, both drawn at 5 pixels a millimetre and looked at by the detector."""
    board = CharucoBoard(square_m=square_mm / 1000)
    for name in ("board.pdf", "board.png"):
        page_mm = write_sheet(board, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        if name.endswith("pdf"):
            page, per_mm = draw_pdf(data), 5.0
        else:
            at = data.index(b"pHYs")
            per_mm = int.from_bytes(data[at + 4 : at + 8], "big") / 1000
            page = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
        if square_mm == 36.0:
            assert page_mm == "A4, 297 x 210 mm"
        assert page.shape[1] / per_mm == pytest.approx(float(re.findall(r"([\d.]+) x", page_mm)[-1]), abs=0.2)
        shrink = 2000 / page.shape[1]
        small = cv2.resize(page, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
        found = board.find(np.repeat(small[:, :, None], 3, axis=2))
        assert found is not None
        assert len(found.corners_m) == 24
        lengths_px = np.linalg.norm(np.diff(found.corners_px.reshape(4, 6, 2), axis=1), axis=2)
        assert lengths_px.mean() / shrink / per_mm == pytest.approx(square_mm, rel=1e-3)


def draw_pdf(data: bytes) -> NDArray[np.uint8]:
    """The rectangles of a PDF that has nothing else, at 5 pixels a millimetre; checks its cross references."""
    places = re.findall(rb"^(\d{10}) 00000 n", data, re.MULTILINE)
    assert [data[int(place) :].split(b" ")[0] for place in places] == [b"1", b"2", b"3", b"4", b"5"]
    assert data[int(re.findall(rb"startxref\n(\d+)", data)[0]) :].startswith(b"xref")
    scale = 5 * 25.4 / 72
    _, _, width, height = (float(v) for v in re.findall(rb"MediaBox \[([^\]]+)\]", data)[0].split())
    page = np.full((round(height * scale), round(width * scale)), 255, np.uint8)
    for x, y, w, h in re.findall(rb"^([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+) re$", data, re.MULTILINE):
        left, right = (round(v * scale) for v in (float(x), float(x) + float(w)))
        top, bottom = (round((height - v) * scale) for v in (float(y) + float(h), float(y)))
        page[top:bottom, left:right] = 0
    return page


def test_a_sheet_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write a board as '\.svg'; choose one of: \.pdf, \.png"):
        write_sheet(CharucoBoard(), tmp_path / "board.svg")
    with pytest.raises(InputError, match="cannot write"):
        write_sheet(CharucoBoard(), tmp_path / "nowhere" / "board.pdf")
