"""Metrics behind the server of pyiqa: against a stand-in for pyiqa, which is not installed here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pyiqa_stand_in import StandIn

from merton.errors import InfrastructureError, InputError
from merton.models import serving
from merton.perception.quality import METRICS, measure, pyiqa_server, remote
from merton.perception.quality.catalogue import CATALOGUE
from merton.perception.quality.learned import TRAINABLE
from merton.perception.quality.sample_pair import sample_pair


def test_a_pair_goes_out_and_a_number_comes_back(stand_in: StandIn) -> None:
    image, reference = sample_pair()
    assert measure("topiq_fr", image, reference) == pytest.approx(image.mean() - reference.mean(), abs=1e-9)
    assert measure("qalign-aesthetic", image) == pytest.approx(image.mean(), abs=1e-9)
    assert stand_in.requests == [("topiq_fr", 1, {}, {}), ("qalign", 1, {}, {"task_": "aesthetic"})]


def test_a_metric_that_fails_on_one_image_loses_no_other(stand_in: StandIn) -> None:
    image, reference = sample_pair()
    black = np.zeros_like(image)
    metric: Any = METRICS["topiq_fr"].build()
    values = metric.values([image, black, reference], [reference] * 3)
    assert values == [pytest.approx(image.mean() - reference.mean()), "RuntimeError: black", 0.0]
    with pytest.raises(InputError, match="topiq_fr failed on this image: RuntimeError: black"):
        measure("topiq_fr", black, reference)


def test_images_of_different_sizes_and_many_pixels_are_measured(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, _ = sample_pair()
    metric: Any = METRICS["qalign"].build()
    small = image[:40, :60]
    assert metric.values([image, small], [image, small]) == [pytest.approx(image.mean()), pytest.approx(small.mean())]
    stand_in.requests.clear()
    monkeypatch.setattr(remote, "BATCH_PX", 2 * small.size // 3 + 1)
    assert metric.values([small] * 5, [small] * 5) == [pytest.approx(small.mean())] * 5
    assert [count for _, count, _, _ in stand_in.requests] == [2, 2, 1]


def test_an_entry_that_contradicts_the_server_is_refused(stand_in: StandIn) -> None:
    image, reference = sample_pair()
    assert measure("dists", image, reference) < 0
    with pytest.raises(InputError, match="ckdn: the entry says that higher is better, and pyiqa says the opposite"):
        measure("ckdn", image, reference)


def test_without_a_server_a_sentence_says_how_to_start_one(no_pyiqa_server: None) -> None:
    image, reference = sample_pair()
    with pytest.raises(InfrastructureError) as caught:
        measure("topiq_fr", image, reference)
    assert "topiq_fr is measured by a server of pyiqa: http://127.0.0.1:" in str(caught.value)
    assert "python -m merton.perception.quality.pyiqa_server" in str(caught.value)
    metric: Any = METRICS["topiq_fr"].build()
    assert [finding.ok for finding in metric.check()] == [False]


def test_a_server_says_what_it_does_not_know(stand_in: StandIn) -> None:
    metric: Any = METRICS["topiq_nr"].build()
    assert [(finding.subject, finding.ok) for finding in metric.check()] == [("server", True), ("metric", False)]
    with pytest.raises(InfrastructureError, match="there is no metric 'topiq_nr' here"):
        measure("topiq_nr", sample_pair()[0])


def test_the_paper_s_fifteen_are_all_there() -> None:
    papers = {metric.paper for metric in METRICS.values()} | {entry.paper for entry in CATALOGUE.values()}
    assert papers - {""} == {
        "PSNR", "SSIM", "Brisque", "Q-Align", "Q-Align+", "AHIQ", "CKDN", "DISTS", "LPIPS", "TOPIQ-FR",
        "CLIPIQA", "CNNIQA", "DBCNN", "QualiClip", "TOPIQ-NR",
    }  # fmt: skip
    assert not set(CATALOGUE) & {*list(METRICS), *TRAINABLE}


def test_the_server_hands_pairs_in_0_to_1_to_pyiqa(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real `PyIqa` with a stand-in for the module: calls and tensors, not weights."""
    torch = pytest.importorskip("torch")
    created: list[tuple[str, dict[str, Any]]] = []

    def create_metric(name: str, **settings: Any) -> Any:
        created.append((name, settings))

        def difference(image: Any, reference: Any, power: int = 1) -> Any:
            assert image.shape == reference.shape
            assert image.dtype == torch.float32
            return (image - reference).abs().pow(power).mean(dim=(1, 2, 3))[:, None]

        difference.lower_better = True  # type: ignore[attr-defined]
        return difference

    module = SimpleNamespace(__version__="0", create_metric=create_metric, list_models=lambda: ["lpips", "ahiq"])
    monkeypatch.setitem(sys.modules, "pyiqa", module)
    metrics = pyiqa_server.PyIqa("cpu")
    assert metrics.names == ["ahiq", "lpips"]
    loaded = metrics.load("lpips", {"net": "vgg"})
    assert metrics.load("lpips", {"net": "vgg"}) is loaded
    assert created == [("lpips", {"device": "cpu", "net": "vgg"})]
    white, black = np.full((4, 5, 3), 255, np.uint8), np.zeros((4, 5, 3), np.uint8)
    assert metrics.measure(loaded, [white, black], [black, black], {"power": 2}) == [1.0, 0.0]


def test_the_server_s_file_runs_beside_serving_alone(tmp_path: Path) -> None:
    """Copied into one folder, as an environment without Merton has them; without pyiqa it ends with one sentence."""
    for module in (pyiqa_server, serving):
        shutil.copy(str(module.__file__), tmp_path)
    code = "import sys; sys.modules['merton'] = None; sys.modules['pyiqa'] = None; import pyiqa_server as server; "
    done = subprocess.run(
        [sys.executable, "-c", code + "print(server.serving.__file__, flush=True); sys.exit(server.main([]))"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert Path(done.stdout.strip()) == tmp_path / "serving.py"
    assert done.stderr == "pyiqa_server: pyiqa is not installed in this environment: pip install pyiqa\n"
