"""From predictions to match scores: each metric on cases worked out by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InputError, UnknownNameError
from merton.rating.scoring.boxes import image_ap
from merton.rating.scoring.scorers import SCORERS, score
from merton.results.matrix import read_matrix


def box(x: float, width: float, *, category: int = 1, **more: float) -> dict[str, object]:
    return {"image_id": 7, "category_id": category, "bbox": [x, 0.0, width, 10.0], **more}


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_ap_of_an_image_by_hand() -> None:
    """A box that covers a share s of an annotated one, and nothing else, has the overlap s."""
    one = [box(0, 100)]
    assert image_ap([box(0, 100, score=0.9)], one) == 1.0
    assert image_ap([box(0, 72, score=0.9)], one) == pytest.approx(0.5)  # right at .50 .55 .60 .65 .70
    assert image_ap([], one) == 0.0
    assert image_ap([box(500, 100, score=0.9), box(0, 100, score=0.8)], one) == pytest.approx(0.5)  # precision 1/2
    assert image_ap([box(500, 100, score=0.7), box(0, 100, score=0.8)], one) == 1.0  # full recall before the miss
    assert image_ap([box(0, 100, score=0.9), box(1, 99, score=0.8)], one) == 1.0
    two = [box(0, 100), box(300, 100)]
    assert image_ap([box(0, 100, score=0.9)], two) == pytest.approx(51 / 101)  # recalls 0, .01 to .50
    other = [*one, box(0, 100, category=2)]
    assert image_ap([box(0, 100, score=0.9)], other) == 0.5  # the mean over categories
    assert image_ap([box(0, 100, score=0.9), box(0, 100, category=3, score=1.0)], one) == 1.0  # not annotated here
    crowd = [*one, box(300, 400, iscrowd=1)]
    in_crowd = [box(300, 50, score=0.95), box(400, 50, score=0.94), box(0, 100, score=0.5)]
    assert image_ap(in_crowd, crowd) == 1.0  # boxes within a crowd are neither right nor wrong
    assert image_ap(in_crowd, [crowd[1]]) is None


def test_ap_of_random_images_is_that_of_pycocotools() -> None:
    golden = json.loads((Path(__file__).parents[2] / "golden" / "coco_ap.json").read_text())
    kinds = {"annotations": "iscrowd", "boxes": "score"}
    rows = {
        kind: [
            {"image_id": image, "category_id": category, name: value, "bbox": bbox}
            for image, category, value, *bbox in golden[kind]
        ]
        for kind, name in kinds.items()
    }
    for image in range(1, 25):
        boxes, annotations = (
            [row for row in rows[kind] if row["image_id"] == image] for kind in ("boxes", "annotations")
        )
        assert image_ap(boxes, annotations) == pytest.approx(golden["values"].get(str(image)), abs=1e-12), image


def test_no_more_than_a_hundred_boxes_of_a_category_count() -> None:
    misses = [box(500, 10, score=1.0) for _ in range(100)]
    assert image_ap([*misses, box(0, 100, score=0.5)], [box(0, 100)]) == 0.0
    assert image_ap([*misses[1:], box(0, 100, score=0.5)], [box(0, 100)]) == pytest.approx(0.01)


def test_images_without_annotations_are_no_cases(tmp_path: Path) -> None:
    """Of COCO's 5,000 validation images 48 have none: the paper rates 4,952."""
    images = [{"id": 7, "file_name": "000007.jpg"}, {"id": 8, "file_name": "000008.jpg"}]
    truth = written(tmp_path / "truth.json", {"images": images, "annotations": [box(0, 100)]})
    found = score("coco_ap", [written(tmp_path / "yolo.json", [box(0, 100, score=0.9)])], truth)
    assert found == {("yolo", "000007"): 1.0}
    folders = {"images": [{"id": 7, "file_name": "a/1.jpg"}, {"id": 8, "file_name": "b/1.png"}]}
    boxes = written(tmp_path / "yolo.json", [box(0, 100, score=0.9)])
    both = {**folders, "annotations": [box(0, 100), {**box(0, 100), "image_id": 8}]}
    found = score("coco_ap", [boxes], written(tmp_path / "truth.json", both))
    assert found == {("yolo", "a/1"): 1.0, ("yolo", "b/1"): 0.0}
    folders["images"][1]["file_name"] = "a/1.png"
    with pytest.raises(InputError, match=r"truth\.json: two images are called 'a/1'"):
        score("coco_ap", [boxes], written(tmp_path / "truth.json", both))
    with pytest.raises(InputError, match=r"cannot read none\.json: No such file"):
        score("coco_ap", [Path("none.json")], written(tmp_path / "truth.json", {"images": images, "annotations": []}))
    for content, sentence in (
        ("{", "is not JSON"),
        ({"a": 1}, "must be a list of boxes"),
        ([{**box(0, 1, score=1.0), "image_id": 9}], "image 9 is not among the 2 annotated images"),
        ([box(0, 1)], "a score is one"),
        ([{**box(0, 1, score=1.0), "bbox": [0, 0, -1, 1]}], "negative width"),
        ([{"image_id": 7, "score": 1.0}], "an entry has no category_id"),
    ):
        with pytest.raises(InputError, match=sentence):
            score("coco_ap", [written(tmp_path / "bad.json", content)], truth)


def test_a_problem_is_solved_by_passing_every_test(tmp_path: Path) -> None:
    rows = "agent,problem,test,passed\na,p,1,1\na,p,2,true\na,q,1,0\nb,p,1,1\nb,p,2,0\nb,q,1,1\n"
    found = score("pass_all", [written(tmp_path / "t.csv", rows)])
    assert found == {("a", "p"): 1.0, ("a", "q"): 0.0, ("b", "p"): 0.0, ("b", "q"): 1.0}
    with pytest.raises(InputError, match="agent 'b' has no result of test '2' of 'p'"):
        score("pass_all", [written(tmp_path / "t.csv", rows.replace("b,p,2,0\n", ""))])
    with pytest.raises(InputError, match=r"t\.csv, line 2: passed is '0.5'; it must be 0 or 1"):
        score("pass_all", [written(tmp_path / "t.csv", "problem,test,passed\np,1,0.5\n")])


def test_answers_are_right_or_wrong(tmp_path: Path) -> None:
    truth = written(tmp_path / "truth.csv", "case,answer\nx,B\ny,A\nz,D\n")
    guessed = written(tmp_path / "llm.csv", "case,answer\nx, b\ny,C\nz,\n")
    assert score("mmlu", [guessed], truth) == {("llm", "x"): 1.0, ("llm", "y"): 0.0, ("llm", "z"): 0.0}
    assert score("acc_at_1", [guessed], truth)["llm", "x"] == 0.0  # letter for letter
    for wrong in ("E", "AB"):
        with pytest.raises(InputError, match=f"'{wrong}' is not a right answer; it is A, B, C or D"):
            score("mmlu", [guessed], written(tmp_path / "e.csv", f"case,answer\nx,{wrong}\n"))
    with pytest.raises(UnknownNameError, match=r"unknown case \(.*line 2\) 'w'"):
        score("mmlu", [written(tmp_path / "w.csv", "case,answer\nw,A\n")], truth)
    with pytest.raises(InputError, match="has answered case 'x' already"):
        score("mmlu", [written(tmp_path / "w.csv", "case,answer\nx,A\nx,A\n")], truth)


def test_whole_numbers_are_the_same_however_a_table_keeps_them(tmp_path: Path) -> None:
    """pandas makes floats of whole numbers where one is missing: 3.0 is 3, and 0 is an answer."""
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    arrow.parquet.write_table(arrow.table({"case": ["x", "y"], "answer": [3.0, 0.0]}), tmp_path / "truth.parquet")
    (tmp_path / "llm.csv").write_text("Case,Answer\nx,3\ny,0\n")
    assert set(score("acc_at_1", [tmp_path / "llm.csv"], tmp_path / "truth.parquet").values()) == {1.0}


def test_sub_scores_become_a_driver_score(tmp_path: Path) -> None:
    table = written(tmp_path / "drama.csv", "case,NC,DAC,EP,TTC,C\ns1,1,1,0.6,1,0\ns2,0.5,1,0.8,0,1\n")
    assert score("pdms", [table]) == pytest.approx({("drama", "s1"): 8 / 12, ("drama", "s2"): 0.25})
    with pytest.raises(InputError, match=r"bad\.csv, line 2: NC must be one of 0, 0.5, 1"):
        score("pdms", [written(tmp_path / "bad.csv", "case,NC,DAC,EP,TTC,C\ns1,0.9,1,0.6,1,0\n")])


def test_map_of_a_scenario_by_hand(tmp_path: Path) -> None:
    """Two objects go straight, one turns. By falling confidence, straight: hit, its second hit (wrong), miss, hit."""
    rows = [
        "case,object,bucket,confidence,miss",
        "s,1,straight,0.9,0",
        "s,1,straight,0.8,0",
        "s,2,straight,0.7,1",
        "s,2,straight,0.6,0",
        "s,3,left,0.5,1",
        "t,9,left,0.5,0",
    ]
    found = score("womd_map", [written(tmp_path / "mtr.csv", "\n".join(rows) + "\n")])
    straight = 0.5 * 1.0 + 0.5 * 2 / 4
    assert found == pytest.approx({("mtr", "s"): (straight + 0.0) / 2, ("mtr", "t"): 1.0})
    for rows_of_one in (["s,1,left,.5,1", "s,1,left,.5,0"], ["s,1,left,.5,0", "s,1,left,.5,1"]):
        tied = written(tmp_path / "tied.csv", "\n".join([rows[0], *rows_of_one]) + "\n")
        assert score("womd_map", [tied]) == {("tied", "s"): 0.5}, "misses come first"
    for line, sentence in (
        ("s,1,left,0.9,0", "object '1' of 's' is in the bucket 'straight'"),
        ("s,4,up,0.9,0", "unknown bucket .* 'up'; choose one of: left, left u-turn"),
        ("s,4,left,0.9,0.5", "miss is '0.5'; it must be 0 or 1"),
        ("s,4,left,1.9,0", "confidence is '1.9'; it must be a number from 0 to 1"),
    ):
        with pytest.raises((InputError, UnknownNameError), match=sentence):
            score("womd_map", [written(tmp_path / "bad.csv", "\n".join([*rows, line]) + "\n")])


def test_an_object_left_out_is_no_better_score(tmp_path: Path) -> None:
    rows = "agent,case,object,bucket,confidence,miss\na,s,1,left,1,0\na,s,2,left,1,1\nb,s,1,left,1,0\n"
    with pytest.raises(InputError, match="agent 'b' predicts nothing of object '2' of 's'"):
        score("womd_map", [written(tmp_path / "w.csv", rows)])


def test_from_predictions_to_a_record_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "one.csv", "problem,test,passed\np,1,1\nq,1,0\n")
    written(tmp_path / "two.csv", "problem,test,passed\nq,1,1\n")
    said = CliRunner().invoke(app, ["results", "score", "pass_all", "one.csv", "two.csv", "--out", "m.csv"])
    assert said.stdout == "pass_all: 2 agents x 2 cases, 1 blanks: m.csv\n"
    with Path("m.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["agent", "p", "q"], ["one", "1.0", "0.0"], ["two", "", "1.0"]]
    assert len(read_matrix(Path("m.csv")).cells) == 3
    done = CliRunner().invoke(app, ["results", "import", "lab.sqlite", "m.csv", "--metric", "pass_all"])
    assert done.exit_code == 0, done.output
    kept = Path("one.csv").read_bytes()
    refused = CliRunner().invoke(app, ["results", "score", "pass_all", "one.csv", "--out", str(tmp_path / "one.csv")])
    assert "one.csv is read and would be overwritten" in str(refused.exception)
    assert Path("one.csv").read_bytes() == kept


def test_a_program_is_not_spared_a_test_that_another_file_has(tmp_path: Path) -> None:
    one = written(tmp_path / "one.csv", "problem,test,passed\nq,1,1\nq,2,0\n")
    two = written(tmp_path / "two.csv", "problem,test,passed\nq,1,1\n")
    with pytest.raises(InputError, match=r"one\.csv has a result of test '2' of 'q', and .*two\.csv has none"):
        score("pass_all", [one, two])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["iou", "x.json"], "choose one of: acc_at_1, coco_ap, mmlu, pass_all, pdms, womd_map"),
        (["coco_ap", "x.json"], "needs the right answers: --truth FILE, COCO's annotations"),
        (["pdms", "x.csv", "--truth", "y.csv"], "pdms needs no right answers"),
        (["pdms", "absent.csv"], "No such file"),
        (["pdms", "x.csv", "--out", "m.txt"], r"--out must be a \.csv file"),
    ],
)
def test_what_cannot_be_scored_is_refused(words: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app, ["results", "score", "--out", "m.csv", *words])
    with pytest.raises((InputError, UnknownNameError), match=sentence):
        raise result.exception or AssertionError(result.output)


def test_every_scorer_has_a_metric_and_says_what_it_reads() -> None:
    from merton.rating.metric import METRICS

    assert set(SCORERS) <= set(METRICS)
    assert all(scorer.predictions and bool(scorer.truth) == scorer.needs_truth for scorer in SCORERS.values())
    assert np.isfinite([METRICS[name].best for name in SCORERS]).all()
