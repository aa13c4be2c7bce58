"""GMSD, VIF, BRISQUE and NIQE against their authors' own programs, recorded, on five images; and laws."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from merton.errors import InputError, MissingDependencyError
from merton.perception.quality import measure, naturalness
from merton.world.observation import Image


def _grey(name: str) -> NDArray[np.uint8]:
    picture = np.ascontiguousarray(getattr(data, name)())
    return picture if picture.ndim == 2 else np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.uint8)


def _noisy(grey: NDArray[np.uint8], sigma: float) -> NDArray[np.uint8]:
    noise = np.random.default_rng(5).normal(0, sigma, grey.shape)
    return np.asarray(np.clip(np.round(grey + noise), 0, 255), np.uint8)


def _as_rgb(grey: NDArray[np.uint8]) -> Image:
    return np.repeat(grey[..., None], 3, axis=2)


def _pixelated(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.repeat(np.repeat(grey[::2, ::2], 2, 0), 2, 1)[: grey.shape[0], : grey.shape[1]]


@pytest.fixture(scope="module")
def images() -> list[Image]:
    """Five of scikit-image's pictures, two of them with noise, none with a flat area, one with odd sides."""
    greys = [
        _grey("coins"),
        _grey("chelsea"),
        _grey("coffee"),
        _noisy(_grey("camera"), 25),
        _noisy(_grey("astronaut"), 8),
    ]
    return [_as_rgb(grey) for grey in greys]


@pytest.fixture(scope="module")
def copies(images: list[Image]) -> list[Image]:
    """Of each a distorted copy: blurred, noisy, dark, pixelated, of less contrast."""
    coins, chelsea, coffee, camera, astronaut = (image[..., 0] for image in images)
    distorted = [
        cv2.GaussianBlur(coins, (0, 0), 1.5),
        _noisy(chelsea, 15),
        coffee // 2,
        _pixelated(camera),
        (astronaut.astype(int) * 6 // 10 + 50).astype(np.uint8),
    ]
    return [_as_rgb(np.asarray(grey, np.uint8)) for grey in distorted]


def test_gmsd_is_that_of_its_authors(images: list[Image], copies: list[Image]) -> None:
    """Recorded from GMSD.m (Xue, Zhang, Mou and Bovik) in GNU Octave 7.3."""
    recorded = (0.098691605610, 0.089504303200, 0.067446180477, 0.193732525895, 0.059954029269)
    assert [measure("gmsd", *pair) for pair in zip(copies, images, strict=True)] == pytest.approx(recorded, rel=1e-6)


def test_vif_is_that_of_torchmetrics(images: list[Image], copies: list[Image]) -> None:
    """Recorded from torchmetrics 1.9.0 (visual_information_fidelity) with torch 2.13.0 in double precision."""
    recorded = (0.3291260119, 0.2769438048, 0.6845480445, 0.0759457155, 0.7911337103)
    assert [measure("vif", *pair) for pair in zip(copies, images, strict=True)] == pytest.approx(recorded, abs=1e-8)


COINS = [
    [2.271, 0.34893, 0.74, 0.03131, 0.11798, 0.15356, 0.718, 0.023299, 0.12339, 0.15028, 0.732, -0.043727],
    [0.15485, 0.10606, 0.735, -0.045884, 0.15679, 0.10555, 2.15, 0.36389, 0.712, -0.042772, 0.17714, 0.12523],
    [0.694, -0.029524, 0.17097, 0.13454, 0.701, -0.031877, 0.16472, 0.12648, 0.698, -0.031527, 0.16457, 0.12668],
]


def test_features_of_brisque_are_those_of_its_authors(images: list[Image]) -> None:
    """Recorded from QualityBRISQUE of OpenCV's contributions 5.0, a port of the authors' release in C++."""
    assert naturalness.brisque_features(images[0]) == pytest.approx(np.ravel(COINS), rel=1e-4)


def test_brisque_is_that_of_its_authors(images: list[Image]) -> None:
    """Recorded: features as above, in single precision, and LIBSVM 3.37 with the numbers of the package brisque."""
    recorded = (-1.218539, 3.661028, 3.910831, 65.222957, 28.510135)
    assert [measure("brisque", image) for image in images] == pytest.approx(recorded, abs=2e-3)


def test_niqe_is_that_of_its_authors_with_our_model(images: list[Image]) -> None:
    """Recorded from computequality.m of LIVE's release in GNU Octave 7.3, given the model that comes with Merton.

    Octave has no imresize: a port of MATLAB's stood in, equal to BasicSR's in single precision.
    """
    recorded = (8.514077394700, 6.612922196161, 5.309302238852, 24.235456295018, 10.505593290232)
    assert [measure("niqe-merton", image) for image in images] == pytest.approx(recorded, abs=1e-6)


def test_without_its_package_brisque_names_the_extra(images: list[Image], monkeypatch: pytest.MonkeyPatch) -> None:
    naturalness.build_brisque.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"brisque needs brisque: .*merton\[quality\]"):
        measure("brisque", images[0])


def test_equal_images_have_the_best_value(images: list[Image]) -> None:
    assert measure("gmsd", images[0], images[0].copy()) == pytest.approx(0, abs=1e-8)
    assert measure("vif", images[0], images[0].copy()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("name", ["gmsd", "niqe-merton", "brisque"])
@pytest.mark.parametrize("fault", ["blur", "noise"])
def test_more_of_a_fault_is_worse(name: str, fault: str, images: list[Image]) -> None:
    reference = images[1]
    if fault == "blur":
        copies = [cv2.GaussianBlur(reference, (0, 0), sigma) for sigma in (0.7, 1.2, 2)]
    else:
        copies = [_as_rgb(_noisy(reference[..., 0], sigma)) for sigma in (5, 12, 30)]
    values = [measure(name, np.asarray(image, np.uint8), reference) for image in (reference, *copies)]
    assert len(set(values)) == len(values)
    if name == "niqe-merton":  # a distance from what is usual: no degree of a fault
        assert min(values) == values[0]
    else:
        assert values == sorted(values)


def test_vif_falls_with_faults_and_rises_with_contrast(images: list[Image]) -> None:
    reference = images[1] // 2 + 60
    copies = [np.asarray(cv2.GaussianBlur(reference, (0, 0), sigma), np.uint8) for sigma in (0.7, 1.2, 2)]
    blurred = [measure("vif", copy, reference) for copy in copies]
    assert blurred == sorted(blurred, reverse=True)
    stretched = np.clip((reference.astype(int) - 124) * 3 // 2 + 124, 0, 255).astype(np.uint8)
    assert measure("vif", stretched, reference) > 1


def test_vif_of_a_reference_without_structure_is_all_or_nothing() -> None:
    flat = np.full((64, 64, 3), 90, np.uint8)
    assert measure("vif", flat, flat.copy()) == 1
    assert measure("vif", flat + 1, flat) == 0


def test_flat_areas_count_neither_as_dark_nor_as_bright(images: list[Image]) -> None:
    """Contrasts do not depend on the level of grey, although errors of rounding do."""
    image = images[1] // 2
    image[20:150, 30:280] = 77
    assert measure("niqe-merton", image + 13) == pytest.approx(measure("niqe-merton", image), abs=1e-6)


def test_images_without_contrast_are_refused() -> None:
    flat = np.full((200, 300, 3), 128, np.uint8)
    with pytest.raises(InputError, match="niqe needs two blocks of 96 x 96 pixels with contrast, found 0"):
        measure("niqe-merton", flat)
    with pytest.raises(InputError, match="brisque is not defined for an image whose contrasts have one sign"):
        measure("brisque", flat)
    one = flat.copy()
    one[:90, :90] = np.random.default_rng(0).integers(0, 255, (90, 90, 3), dtype=np.uint8)
    with pytest.raises(InputError, match="found 1"):
        measure("niqe-merton", one)
