"""Opinions: one score per image, by hand; no order of rows plays a part; a missing task makes a sum missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from merton.errors import InputError, UnknownNameError
from merton_studies.opinions import opinion
from merton_studies.opinions.opinion import Images, Opinions, SubjectSums

arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

TASKS = ("Pick", "Place", "Pull", "Push", "Twist")
NAMES = {"vlm": ("bleu", "rouge_l", "cider"), "vla": ("position", "rotation", "state")}
TOTAL = {"vlm": "cognition", "vla": "decision"}
Row = dict[str, Any]


def table(rows: list[Row]) -> Any:
    return arrow.Table.from_pylist(rows)


def scores_of(model: str, image: str, level: int, values: dict[str, list[float]]) -> list[Row]:
    """A row for each dimension and task, and the total of the three dimensions."""
    whole = {**values, TOTAL[model[:3]]: [float(np.mean(parts)) for parts in zip(*values.values(), strict=True)]}
    return [
        {
            "model": model,
            "scene": image.partition("_")[0],
            "image": image,
            "task": task,
            "dimension": name,
            "level": level,
            "score": score,
        }
        for name, found in whole.items()
        for task, score in zip(TASKS, found, strict=True)
    ]


def images(*names: tuple[str, str, int]) -> Images:
    """The images (reference, distortion, level), all of one category."""
    reference, distortion, level = zip(*names, strict=True)
    ids = [f"{1 + sorted(set(distortion)).index(name):02d}" for name in distortion]
    rest = [["blur"] * len(names), level, *([word] * len(names) for word in ("real", "third_person", "cup", "table"))]
    return Images(*(np.array(column) for column in (reference, ids, distortion, *rest)))


def planted(models: tuple[str, ...] = ("vlm-a", "vlm-b", "vla-a", "vla-b"), references: int = 3) -> list[Row]:
    """Random scores of every model on references and their copies of two types."""
    rng = np.random.default_rng(1)
    rows = []
    for model in models:
        for number in range(references):
            for distortion, level in (("reference", 0), ("jpeg", 2), ("haze", 4)):
                values = {name: rng.uniform(size=5).tolist() for name in NAMES[model[:3]]}
                rows += scores_of(model, f"s{number}_top.{distortion}", level, values)
    return rows


SHOWN = images(*((f"s{number}_top", *shown) for number in range(3) for shown in (("jpeg", 2), ("haze", 4))))


def test_two_models_two_images_five_tasks_by_hand() -> None:
    """vlm-a on x: bleu .1 .2 .3 .4 .5 = 1.5, rouge 5 x .6 = 3, cider 5 x .3 = 1.5: cognition 2. vlm-b on x: 1 each = 5.
    The mean is 3.5; the standard deviation of 2 and 5 is 3 / sqrt(2). On y: 5 x .2 = 1 and 5 x .4 = 2 in all."""
    rising, five = [0.1, 0.2, 0.3, 0.4, 0.5], [[value] * 5 for value in (0.6, 0.3, 1.0, 0.2, 0.4)]
    rows = scores_of("vlm-a", "r.x", 1, {"bleu": rising, "rouge_l": five[0], "cider": five[1]})
    rows += scores_of("vlm-b", "r.x", 1, dict.fromkeys(NAMES["vlm"], five[2]))
    rows += scores_of("vlm-a", "r.y", 3, dict.fromkeys(NAMES["vlm"], five[3]))
    rows += scores_of("vlm-b", "r.y", 3, dict.fromkeys(NAMES["vlm"], five[4]))
    found = opinion.opinions(opinion.subject_sums([table(rows)]), images(("r", "x", 1), ("r", "y", 3)))
    assert found.cognition == pytest.approx([3.5, 1.5], abs=1e-12)
    assert found.bleu == pytest.approx([3.25, 1.5], abs=1e-12)
    assert found.rouge_l == pytest.approx([4.0, 1.5], abs=1e-12)
    assert found.cider == pytest.approx([3.25, 1.5], abs=1e-12)
    assert found.sos["cognition"] == pytest.approx([3 / np.sqrt(2), 1 / np.sqrt(2)], abs=1e-12)
    assert found.n["cognition"].tolist() == [2, 2]
    assert np.isnan(found.decision).all()
    assert found.n["decision"].tolist() == [0, 0]
    assert found.stages == ["cognition"]


def test_the_order_of_rows_and_tables_plays_no_part(tmp_path: Path) -> None:
    rows, written = planted(), []
    for number in range(3):
        np.random.default_rng(number).shuffle(rows)  # type: ignore[arg-type]
        half = [[row for row in rows if (row["model"] < "vlm") == (number > 1)] for number in (0, 2)]
        sums = opinion.subject_sums([table(part) for part in half[:: 1 - 2 * (number % 2)]])
        opinion.write_subjects(sums, tmp_path / "s")
        opinion.write_opinions(
            opinion.opinions(sums, SHOWN.where(np.random.default_rng(number).permutation(6))), tmp_path / "o"
        )
        written.append(((tmp_path / "s").read_bytes(), (tmp_path / "o").read_bytes()))
    assert written[0] == written[1] == written[2]


def test_a_model_without_one_task_changes_n_and_not_the_mean_of_the_others() -> None:
    rows = planted()
    gone = [
        row for row in rows if not (row["model"] == "vlm-b" and row["image"] == "s1_top.jpeg" and row["task"] == "Pull")
    ]
    sums = opinion.subject_sums([table(gone)])
    found = opinion.opinions(sums, SHOWN, least_subjects=1)
    alone = opinion.opinions(opinion.subject_sums([table(rows)]), SHOWN, subjects=["vlm-a"])
    at = int(np.flatnonzero((found.reference_id == "s1_top") & (found.distortion == "jpeg"))[0])
    assert found.n["cognition"].tolist() == [1 if row == at else 2 for row in range(6)]
    assert found.cognition[at] == alone.cognition[at]
    assert np.isnan(found.sos["cognition"][at])
    strict = opinion.opinions(sums, SHOWN)
    assert np.isnan(strict.cognition[at])
    assert strict.unused("cognition").tolist() == [at]
    assert strict.unused("decision").tolist() == []


def test_the_three_dimensions_make_the_total() -> None:
    found = opinion.opinions(opinion.subject_sums([table(planted())]), SHOWN)
    for total, parts in ((found.cognition, NAMES["vlm"]), (found.decision, NAMES["vla"])):
        assert sum(found.value(name) for name in parts) / 3 == pytest.approx(total, abs=1e-12)


def same(one: Opinions | SubjectSums, other: Opinions | SubjectSums) -> None:
    for name, value in vars(one).items():
        there = getattr(other, name)
        pairs = (
            [(value[key], there[key]) for key in value]
            if isinstance(value, dict) and name != "about"
            else [(value, there)]
        )
        for mine, theirs in pairs:
            if name == "about" or isinstance(mine, int):
                assert mine == theirs
            else:
                np.testing.assert_array_equal(mine, theirs)


def test_files_hold_what_was_written(tmp_path: Path) -> None:
    gone = [
        row for row in planted() if not (row["model"] == "vlm-b" and row["task"] == "Pull" and row["scene"] == "s1")
    ]
    sums = opinion.subject_sums([table(gone)])
    rounded = {name: matrix.astype(np.float32).astype(float) for name, matrix in sums.values.items()}
    opinion.write_subjects(sums, tmp_path / "s.parquet")
    read = opinion.read_subjects(tmp_path / "s.parquet")
    same(SubjectSums(**{**vars(sums), "values": rounded}), read)
    found = opinion.opinions(sums, SHOWN)
    opinion.write_opinions(found, tmp_path / "o.parquet")
    same(found, opinion.read_opinions(tmp_path / "o.parquet"))
    assert found.scene.tolist() == [name.partition("_")[0] for name in found.reference_id.tolist()]


def test_z_scores_weigh_subjects_alike() -> None:
    sums = opinion.subject_sums([table(planted())])
    found = opinion.opinions(sums, SHOWN, "zscore")
    matrix = sums.values["decision"][:2][:, sums.level > 0]
    by_hand = ((matrix - matrix.mean(axis=1, keepdims=True)) / matrix.std(axis=1, keepdims=True)).mean(axis=0)
    assert sorted(found.decision) == pytest.approx(sorted(by_hand), abs=1e-12)
    assert found.about["label"] == "zscore"


def test_leaving_one_subject_out() -> None:
    sums = opinion.subject_sums([table(planted())])
    (name, others, own), (second, *_) = opinion.leave_one_out(sums, SHOWN, "cognition")
    assert (name, second) == ("vlm-a", "vlm-b")
    same(others, opinion.opinions(sums, SHOWN, subjects=["vlm-b"]))
    same(own, opinion.opinions(sums, SHOWN, subjects=["vlm-a"]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": float("nan")}, "scores must be in 0 .. 1"),
        ({"score": 1.5}, "scores must be in 0 .. 1"),
        ({"score": None}, "is empty in 1 rows"),
        ({"level": -1}, "a level must be"),
        ({"task": "Place"}, "is there twice"),
    ],
)
def test_wrong_scores_are_refused(change: Row, words: str) -> None:
    rows = planted()
    rows[0] = {**rows[0], **change}
    with pytest.raises(InputError, match=words):
        opinion.subject_sums([table(rows)])


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    sums = opinion.subject_sums([table(planted(("vlm-a", "vla-a", "vla-b")))])
    with pytest.raises(InputError, match="another dataset"):
        opinion.opinions(sums, images(("elsewhere", "jpeg", 1)))
    with pytest.raises(UnknownNameError, match="nobody"):
        opinion.opinions(sums, SHOWN, subjects=["nobody"])
    with pytest.raises(InputError, match="at least two of cognition"):
        next(opinion.leave_one_out(sums, SHOWN, "cognition"))
    flat = opinion.subject_sums([table([{**row, "score": 0.5} for row in planted()])])
    with pytest.raises(InputError, match="leave it out"):
        opinion.opinions(flat, SHOWN, "zscore")
    assert set(opinion.opinions(flat, SHOWN).jnd_cognition.tolist()) == {""}
    with pytest.raises(InputError, match="there is no file"):
        opinion.read_opinions(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(InputError, match="no Parquet"):
        opinion.read_subjects(tmp_path / "text.parquet")
