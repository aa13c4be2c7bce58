"""Networks of pyiqa, trained in an environment of their own: here a stand-in of it, and the real one where it is named.

The real one: MERTON_IQA_PYTHON=FOLDER/bin/python pytest tests/unit/perception/test_pyiqa_training.py
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Picture
from pyiqa_environment import write_environment

import patience
from merton.errors import InfrastructureError, InputError, MissingDependencyError, UnknownNameError
from merton.perception.quality import pyiqa_trainer
from merton.perception.quality.learned import ELSEWHERE, TRAINABLE, trainable
from merton.perception.quality.learned.elsewhere import VARIABLE
from merton.perception.quality.learned.pyiqa_networks import EPOCHS, NETWORKS, RATE
from merton.perception.quality.pairs import ImagePair

REAL = os.environ.get(VARIABLE)
COUNT = 12


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of the stand-in; what it says of itself is asked for once."""
    pytest.importorskip("torch")
    return write_environment(tmp_path_factory.mktemp("pyiqa") / "environment")


@pytest.fixture
def environment(interpreter: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stand-in, named by the variable."""
    monkeypatch.setenv(VARIABLE, str(interpreter))
    return interpreter


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[ImagePair]:
    """Twelve pictures with noise that grows from one to the next, of three sizes."""
    folder, found = tmp_path_factory.mktemp("pairs"), []
    for number in range(COUNT):
        rng = np.random.default_rng(number)
        clean = np.full((40 + 4 * (number % 3), 48, 3), rng.integers(90, 160, 3), np.uint8)
        noisy = np.clip(clean + rng.normal(0, 6 * number, clean.shape), 0, 255).astype(np.uint8)
        names = folder / f"{number}.png", folder / f"{number}_reference.png"
        for name, pixels in zip(names, (noisy, clean), strict=True):
            Picture.fromarray(pixels).save(name)
        found.append(ImagePair(*names))
    return found


LABELS = np.linspace(5.0, 1.0, COUNT)


def test_the_paper_s_ten_are_found_by_name_and_not_listed() -> None:
    full = ["ahiq", "ckdn", "dists", "lpips", "topiq_fr"]
    alone = ["clipiqa+", "cnniqa-pyiqa", "dbcnn", "qualiclip+", "topiq_nr"]
    assert {*full, *alone} <= set(ELSEWHERE) == set(NETWORKS)
    assert not set(ELSEWHERE) & {*list(TRAINABLE)}
    assert "topiq_fr" in TRAINABLE
    assert [name for name in NETWORKS if NETWORKS[name].needs_reference] == full
    assert (RATE, EPOCHS) == (1e-5, 50)  # section 5.1 of the paper
    with pytest.raises(UnknownNameError, match=r"unknown trainable metric 'topiq_f'; did you mean 'topiq_fr'\?"):
        TRAINABLE["topiq_f"]


def test_without_an_environment_one_sentence_says_how_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MissingDependencyError, match=r"topiq_fr is a network of pyiqa: .*export MERTON_IQA_PYTHON="):
        trainable("topiq_fr")
    monkeypatch.setenv(VARIABLE, "/nowhere/python")
    with pytest.raises(MissingDependencyError, match="MERTON_IQA_PYTHON is '/nowhere/python', and no program is there"):
        trainable("topiq_fr")


def test_an_environment_without_pyiqa_is_named(
    pairs: list[ImagePair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv(VARIABLE, sys.executable)
    with pytest.raises(MissingDependencyError, match="pyiqa is not installed in the environment of"):
        TRAINABLE["topiq_fr"].train(pairs, LABELS, 0, tmp_path, 1)


def test_a_training_is_the_same_twice_and_knows_how_it_began(
    environment: Path, pairs: list[ImagePair], tmp_path: Path
) -> None:
    metric = TRAINABLE["topiq_fr"]
    told: list[tuple[int, int]] = []
    made = [
        metric.train(pairs, LABELS, seed, tmp_path / folder, 3, lambda *place: told.append(place))
        for folder, seed in (("one", 4), ("two", 4))
    ]
    assert told[:4] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    contents = [file.read_bytes() for file in made]
    assert contents[0] == contents[1]
    assert metric.start(made[0]) == (
        "random start; absent: vgg16 (torchvision), whole_network (pyiqa); 0.000313 of 0.000313 M parameters learn"
    )
    guess = metric.predict(made[0], pairs)
    assert guess.shape == (COUNT,)
    assert np.isfinite(guess).all()
    with pytest.raises(InputError, match="holds the training of other images, labels, seed, epochs or versions"):
        metric.train(pairs, LABELS, 6, tmp_path / "one", 3)


def test_killed_in_the_middle_it_ends_with_the_same_bytes(
    environment: Path, pairs: list[ImagePair], tmp_path: Path
) -> None:
    """kill -9 of the process that asked: the trainer ends too, and the same call goes on from the checkpoint."""
    code = (
        "import sys, numpy as np; from pathlib import Path\n"
        "from merton.perception.quality.learned import TRAINABLE\n"
        "from merton.perception.quality.pairs import ImagePair\n"
        "pairs = [ImagePair(*map(Path, pair.split('|'))) for pair in sys.argv[2:]]\n"
        f"labels = np.linspace(5.0, 1.0, {COUNT})\n"
        "TRAINABLE['dists'].train(pairs, labels, 1, Path(sys.argv[1]), 120, lambda *place: print(*place, flush=True))\n"
    )
    given = [f"{pair.image}|{pair.reference}" for pair in pairs]
    killed = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "killed"), *given], stdout=subprocess.PIPE, text=True
    )
    assert killed.stdout is not None
    assert next(line for line in killed.stdout if not line.startswith("0 ")) == "1 120\n"
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "weights.npz").exists()
    killed.stdout.close()
    first: list[int] = []
    metric = TRAINABLE["dists"]

    def ended() -> bool:
        return subprocess.run(["pgrep", "-f", str(environment)], capture_output=True).returncode != 0

    patience.until(ended)
    resumed = metric.train(pairs, LABELS, 1, tmp_path / "killed", 120, lambda done, _: first.append(done))
    assert 1 <= first[0] < 120, "it did not go on from a checkpoint"
    whole = metric.train(pairs, LABELS, 1, tmp_path / "whole", 120)
    assert resumed.read_bytes() == whole.read_bytes()


def test_a_loss_that_leaves_scale_and_offset_open_still_predicts_labels(
    environment: Path, pairs: list[ImagePair], tmp_path: Path
) -> None:
    """PLCC alone: the outputs are brought to the mean and deviation of the labels of the training images."""
    metric = TRAINABLE["cnniqa-pyiqa"]
    guess = metric.predict(metric.train(pairs, LABELS, 0, tmp_path, 2), pairs)
    assert guess.mean() == pytest.approx(LABELS.mean(), abs=1e-3)
    assert guess.std() == pytest.approx(LABELS.std(), rel=1e-3)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("clipiqa+", InputError, r"clipiqa\+: the weights of CLIP RN50, without which nothing is learned, are absent"),
        ("ckdn", InputError, "ckdn: no part of this network can be trained"),
        ("lpips", InfrastructureError, "the process of pyiqa that works on lpips failed"),
        ("maniqa", InputError, "this pyiqa has no network 'maniqa'"),
    ],
)
def test_a_network_that_cannot_be_trained_says_why(
    name: str, error: type[Exception], said: str, environment: Path, pairs: list[ImagePair], tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        TRAINABLE[name].train(pairs, LABELS, 0, tmp_path, 1)


def test_wrong_inputs_are_named(environment: Path, pairs: list[ImagePair], tmp_path: Path) -> None:
    metric = TRAINABLE["topiq_fr"]
    with pytest.raises(InputError, match="compares with a reference image"):
        metric.train([*pairs[1:], ImagePair(pairs[0].image)], LABELS, 0, tmp_path, 1)
    with pytest.raises(InputError, match="at least 8 images"):
        metric.train(pairs[:7], LABELS[:7], 0, tmp_path, 1)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"cannot read image '.*broken.png'"):
        metric.train([*pairs[1:], ImagePair(broken, pairs[0].reference)], LABELS, 0, tmp_path / "out", 1)


def test_the_trainer_ends_when_its_input_does(environment: Path) -> None:
    """Its parent may be killed before a job: it must not stay."""
    done = subprocess.run([str(environment), pyiqa_trainer.__file__], input=json.dumps({"do": "about"}) + "\n",
                          capture_output=True, text=True, timeout=60)  # fmt: skip
    assert done.returncode in (0, 3)


@pytest.mark.skipif(not REAL, reason=f"{VARIABLE} names no environment with pyiqa")
def test_the_real_pyiqa_trains_and_predicts(pairs: list[ImagePair], tmp_path: Path) -> None:
    assert REAL is not None
    metric = trainable("cnniqa-pyiqa")
    weights = metric.train(pairs, LABELS, 0, tmp_path, 1)
    assert "CNNIQA" in metric.start(weights)
    assert np.isfinite(metric.predict(weights, pairs[:2])).all()
