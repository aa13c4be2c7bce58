"""Images too large to decode are refused by their headers, at every door, before they cost memory."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from merton.errors import InputError
from merton.models import serving
from merton.perception.camera.decoding import depth_mm_of
from merton.perception.camera.folder import FolderCamera
from merton.perception.dataset import intake
from merton.perception.image_size import LARGEST_IMAGE_PX, check_size
from merton.perception.images import decode_image
from merton.world.opencv import METADATA
from patience import stretched

SIDE = 30_000
KINDS = (".png", ".jpg", ".webp", "lossy.webp", ".jp2", ".bmp", ".tiff")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_bomb(side: int = SIDE) -> bytes:
    """A correct black PNG of side x side pixels, one bit each."""
    packer = zlib.compressobj(1)
    row = bytes(1 + (side + 7) // 8)
    packed = b"".join([packer.compress(row * 1000) for _ in range(side // 1000)]) + packer.flush()
    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def encoded(kind: str, height: int = 48, width: int = 64) -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    options = [cv2.IMWRITE_WEBP_QUALITY, 50] if kind == "lossy.webp" else []
    return cv2.imencode("." + kind.rpartition(".")[2], cv2.GaussianBlur(noise, (0, 0), 2), options)[1].tobytes()


def claiming(kind: str, side: int) -> bytes:
    """A small file whose header says side x side pixels."""
    content = bytearray(encoded(kind))
    if kind == ".png":
        content[16:24] = struct.pack(">II", side, side)
        content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    elif kind == ".jpg":
        frame = content.index(b"\xff\xc0") + 5
        content[frame : frame + 4] = struct.pack(">HH", side, side)
    elif kind == ".webp":
        content[21:25] = struct.pack("<I", 0x3FFF | 0x3FFF << 14)  # its largest size
    elif kind == "lossy.webp":
        content[26:30] = struct.pack("<HH", 0x3FFF, 0x3FFF)
    elif kind == ".jp2":
        box = content.index(b"ihdr") + 4
        content[box : box + 8] = struct.pack(">II", side, side)
    elif kind == ".bmp":
        content[18:26] = struct.pack("<ii", side, -side)
    else:
        directory = struct.unpack_from("<I", content, 4)[0]
        for entry in range(directory + 2, directory + 26, 12):  # the tags of width and height come first
            content[entry + 2 : entry + 12] = struct.pack("<HII", 4, 1, side)
    return bytes(content)


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_beyond_the_limit_is_refused_by_the_header(kind: str) -> None:
    intact = encoded(kind)
    check_size(intact)
    assert decode_image(intact).shape == (48, 64, 3)
    side = 16384 if kind.endswith("webp") else SIDE
    with pytest.raises(
        InputError, match=r"^too large: (\d+) x (\d+) pixels, at most 134 million are possible$"
    ) as told:
        decode_image(claiming(kind, side))
    assert int(str(told.value).split()[2]) in (side, side - 1)
    for length in range(17):
        with pytest.raises(InputError, match="not an intact image"):
            decode_image(intact[:length])


def test_a_tiff_cannot_hide_its_size() -> None:
    content = bytearray(claiming(".tiff", 64))
    directory = struct.unpack_from("<I", content, 4)[0]
    content[directory + 2 : directory + 4] = struct.pack("<H", 322)  # a tile of that width, but no picture's width
    with pytest.raises(InputError, match="not an intact image"):
        check_size(bytes(content))
    hidden = bytearray(encoded(".tiff"))
    hidden[directory + 26 : directory + 38] = struct.pack("<HHII", 322, 4, 1, 3_000_000)  # a tile is decoded whole
    with pytest.raises(InputError, match="too large: 3000000 x 48"):
        check_size(bytes(hidden))


def test_other_kinds_of_files_are_refused() -> None:
    for ending in (".gif", ".ppm", ".hdr") if METADATA else (".ppm", ".hdr"):  # OpenCV before 4.12 writes no GIF
        with pytest.raises(InputError, match="PNG, JPEG, WEBP, JPEG 2000, BMP or TIFF"):
            decode_image(encoded(ending))


def test_every_door_refuses_a_picture_of_900_million_pixels_from_a_file_of_a_few_kilobytes(tmp_path: Path) -> None:
    bomb = png_bomb()
    (tmp_path / "bomb.png").write_bytes(bomb)
    message = type("Message", (), {"data": bytes(12) + bomb, "format": "16UC1; compressedDepth png"})
    doors: tuple[Any, ...] = (
        lambda: intake.decode(bomb),
        lambda: intake.decode(claiming(".jpg", SIDE)),
        lambda: intake.decode(claiming(".webp", SIDE)),
        lambda: FolderCamera(tmp_path)[0],
        lambda: depth_mm_of(message),
    )
    for door in doors:
        with pytest.raises(InputError, match=r"too large: \d+ x \d+ pixels, at most 134 million"):
            door()


PEAK = """
def peak_mib():  # not ru_maxrss: it remembers the process that started this one
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
"""

COMMAND = (
    PEAK
    + """
import runpy, sys
sys.argv = ["merton", *sys.argv[1:]]
try:
    runpy.run_module("merton", run_name="__main__")
finally:
    print("peak", peak_mib())
"""
)

REQUEST = (
    PEAK
    + """
import json, sys
from merton.models import serving
if sys.argv[1] == "opencv":
    sys.modules["PIL"] = None
try:
    serving._question(json.load(sys.stdin))
except serving.BadRequest as error:
    print(error)
print("peak", peak_mib())
"""
)


def test_the_command_line_says_so_in_one_sentence_and_stays_small(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(png_bomb())
    arguments = ["distort", "bomb.png", "--name", "lens_blur", "--level", "3", "-o", "out.png"]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=stretched(60)
    )
    expected = "merton: 'bomb.png' is too large: 30000 x 30000 pixels, at most 134 million are possible"
    assert done.stderr.strip() == expected
    assert int(done.stdout.split()[-1]) < 500, "MiB; the decoded picture has 2,575"


@pytest.mark.parametrize("reader", ["pillow", "opencv"])
def test_a_served_model_refuses_it_and_stays_small(reader: str) -> None:
    if reader == "pillow":
        pytest.importorskip("PIL", reason="Pillow is not installed")
    assert serving.LARGEST_IMAGE_PX == LARGEST_IMAGE_PX
    url = "data:image/png;base64," + base64.b64encode(png_bomb()).decode()
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "what?"}]
    body = json.dumps({"messages": [{"content": parts}]})
    done = subprocess.run(
        [sys.executable, "-c", REQUEST, reader], input=body, capture_output=True, text=True, timeout=stretched(60)
    )
    says, _, peak = done.stdout.rpartition("peak ")
    assert "an image cannot be read" in says, done.stderr
    assert int(peak) < 500, "MiB; the decoded picture has 2,575"


def test_the_images_of_a_request_share_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LARGEST_IMAGE_PX", 48 * 64 * 3)
    url = "data:image/png;base64," + base64.b64encode(encoded(".png")).decode()
    part = {"type": "image_url", "image_url": {"url": url}}

    def request(images: int) -> Any:
        content = [part] * images + [{"type": "text", "text": "what?"}]
        return serving._question({"messages": [{"content": content}]})

    assert len(request(3)[0]) == 3
    with pytest.raises(serving.BadRequest, match="too large: 64 x 48 pixels"):
        request(4)
