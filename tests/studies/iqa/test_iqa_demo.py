"""`merton iqa demo` on a few pictures: one self-contained page, and a second call that makes nothing anew."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet
import pytest

from merton.errors import MissingDependencyError
from merton.progress import quiet
from merton.study import execution_page, execution_study
from merton_studies.iqa import demo, sample
from merton_studies.iqa.demo_page import write_demo_page
from merton_studies.iqa.gate_study import gate_study

SCENES = 3
TYPES = ("gaussian_blur", "lens_blur", "jpeg", "hsv_saturation", "max_darken", "block_lost")


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a few scenes and types, and few resplits of a quarter of the gate's trials."""
    compute = pyarrow.compute
    scenes = "|".join(f"{scene:02d}" for scene in range(SCENES))
    for name in ("SUBJECTS", "MANIFEST"):
        whole = pyarrow.parquet.read_table(getattr(sample, name))
        few = compute.and_(
            compute.match_substring_regex(whole["reference_id"], f"_({scenes})_"),
            compute.is_in(whole["distortion"], pyarrow.array(TYPES)),
        )
        pyarrow.parquet.write_table(whole.filter(few), tmp_path / f"{name}.parquet")
        monkeypatch.setattr(sample, name, tmp_path / f"{name}.parquet")
    monkeypatch.setattr(sample, "SCENES", SCENES)
    monkeypatch.setattr(demo, "gate_study", partial(gate_study, resplits=2))
    header, *trials = demo.SAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "trials.csv").write_text(header + "".join(trials[::4]), encoding="utf-8")
    monkeypatch.setattr(demo, "SAMPLE", tmp_path / "trials.csv")
    monkeypatch.setattr("merton.processes.usable_cores", lambda: 1)  # to begin a process takes longer


@pytest.mark.usefixtures("renders")
def test_the_demonstration_ends_in_one_page(tmp_path: Path, short: None) -> None:
    out = tmp_path / "iqa"
    shown = demo.demonstrate(out, quiet, repeats=1, metrics=["psnr", "ssim"])
    assert shown.images == 2 * SCENES * 3 * len(TYPES)
    page = write_demo_page(shown, tmp_path / "index.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r'href="#([\w-]+)"', page))
    assert {"decision", "cognition", "gate", "execution", "claims"} <= anchors
    assert anchors <= set(re.findall(r'id="([\w-]+)"', page)), "a link leads nowhere"
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page), "the page needs another file"
    assert str(tmp_path) not in page

    made = {path: path.stat().st_mtime_ns for path in out.rglob("*.png")}
    again = demo.demonstrate(out, quiet, repeats=1, metrics=["psnr", "ssim"])
    assert write_demo_page(again, tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.png")} == made


def test_a_missing_package_is_named_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"the training of cnniqa needs torch: .*merton\[iqa\]"):
        demo.demonstrate(tmp_path / "iqa", quiet)
    assert not (tmp_path / "iqa").exists()


def test_the_shipped_study_is_small_and_whole() -> None:
    """1,470 of its 1,500 trials: one reference run of fifty failed."""
    content = demo.EXECUTION.read_bytes()
    assert len(content) <= 200_000
    study = execution_study.from_json(content, demo.EXECUTION.name)
    assert (study.trials, len(study.agents), study.references, study.scenes, len(study.types)) == (1470, 5, 10, 10, 30)
    assert study.excluded.failed_references == (("twice", "val-move.2"),)
    assert {claim.source for claim in study.claims} == {"run", "opinions"}
    decision = next(claim for claim in study.claims if (claim.stage, claim.source) == ("decision", "run"))
    assert decision.interval is not None
    assert decision.interval[0] > 0.0, "the shipped subjects are not too robust"
    assert [example.kind for example in study.examples] == ["success", "deviation", "emergency stop"]
    assert all(all(example.pictures) for example in study.examples)
    assert execution_page.fragment(study).count("<img ") == 6
