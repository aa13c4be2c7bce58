"""The gallery of distortions, and `merton distort`."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError
from merton.perception.distortion import DISTORTIONS, all_distortions, distort
from merton.perception.distortion import gallery as gallery_module
from merton.perception.distortion.gallery import gallery
from merton.perception.quality import measure
from merton.seeding import generator


def picture() -> np.ndarray:
    image = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    return cv2.GaussianBlur(image, (0, 0), 2)


def test_gallery_shows_every_type_at_every_level(tmp_path: Path) -> None:
    gallery(picture(), tmp_path / "gallery.html", name="<my> table.png")
    page = (tmp_path / "gallery.html").read_text()
    assert "<h1>Distortions of &lt;my&gt; table.png</h1>" in page
    assert page.count("<figure>") == 5 * len(DISTORTIONS)
    assert page.count("data:image/jpeg;base64,") == 2 * 5 * len(DISTORTIONS) + 2, "whole and middle"
    assert "http:" not in page
    assert "https:" not in page
    assert all(f'id="{name}"' in page for name in DISTORTIONS)
    worst = distort(picture(), "white_noise", 5, generator(0, "white_noise"))
    assert f"5: 0.01 · {measure('psnr', worst, picture()):.1f} dB" in page


def test_pictures_of_a_page_are_whole_and_bounded_whatever_the_size() -> None:
    """A wide picture keeps its form, and a small one its size."""
    wide = np.zeros((100, 2000, 3), np.uint8)
    assert gallery_module._smaller(wide).shape == (11, 216, 3)
    assert gallery_module._smaller(picture()).shape == picture().shape
    noise = np.random.default_rng(1).integers(0, 256, (162, 216, 3), dtype=np.uint8)
    pictures = 2 * 5 * len(DISTORTIONS) + 2
    assert pictures * len(gallery_module._jpeg(noise)) < 15e6, "no picture is harder to compress than noise"


def test_the_middle_is_shown_pixel_for_pixel_so_that_noise_is_seen(tmp_path: Path) -> None:
    image = cv2.resize(picture(), (180, 140))
    gallery(image, tmp_path / "gallery.png", levels=(1, 5))
    shown = cv2.imread(str(tmp_path / "gallery.png"))[..., ::-1]
    blocks = -(-len(DISTORTIONS) // 10)
    assert shown.shape == (10 * (120 + 16), blocks * (150 + 2 * 162), 3)
    for number, name in enumerate(DISTORTIONS):
        block, row = divmod(number, 10)
        worst = distort(image, name, 5, generator(0, name))
        tile = shown[row * 136 :, block * 474 + 150 + 162 :][:120, :160]
        assert np.array_equal(tile, worst[10:130, 10:170]), name


def test_a_type_of_ones_own_is_shown_below_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of types that does not fill the last block, which stays white."""
    monkeypatch.setattr("merton.perception.distortion.gallery.DISTORTIONS", dict(list(DISTORTIONS.items())[:11]))
    gallery(picture(), tmp_path / "gallery.png", levels=(1,))
    shown = cv2.imread(str(tmp_path / "gallery.png"))
    assert shown.shape == (10 * (48 + 16), 2 * (150 + 66), 3)
    assert (shown[48 + 16 :, 150 + 66 :] == 255).all()


def test_wrong_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not 'gallery"):
        gallery(picture(), tmp_path / "gallery.pdf")
    with pytest.raises(InputError, match="cannot write"):
        gallery(picture(), tmp_path / "nowhere" / "gallery.png")


def test_commands(tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    cv2.imwrite(str(source), picture()[..., ::-1])
    run = CliRunner()
    arguments = ["distort", str(source), "--name", "2", "--level", "2.5", "-o", str(target)]
    assert run.invoke(app, arguments, catch_exceptions=False).exit_code == 0
    expected = distort(picture(), "lens_blur", 2.5, generator(0))
    assert np.array_equal(cv2.imread(str(target))[..., ::-1], expected)
    assert run.invoke(app, ["distort", "gallery", str(source), "-o", str(tmp_path / "g.png")]).exit_code == 0
    listed = json.loads(run.invoke(app, ["distort", "list", "--json"]).stdout)
    assert [entry["name"] for entry in listed] == list(DISTORTIONS)
    shown = run.invoke(app, ["distort", "list"]).stdout
    assert "sigma [px]" in run.invoke(app, ["distort", "list"], env={"COLUMNS": "200"}).stdout
    assert all(name in shown for name in all_distortions()), "an experiment may name the faults too"
    for wrong in (["--name", "nope"], ["--level", "9"], ["-o", str(tmp_path / "x.nope")], ["-o", "/nowhere/x.png"]):
        assert isinstance(run.invoke(app, [*arguments, *wrong]).exception, InputError), wrong
    source.write_bytes(b"no image")
    assert isinstance(run.invoke(app, arguments).exception, InputError)
