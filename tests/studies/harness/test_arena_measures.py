"""CIDEr, micro-F1 and ends of episodes as measures of answers: by hand, and CIDEr by a second computation."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.cognition.text import Cider
from merton.errors import InputError
from merton.leaderboard.published.items import Counts
from merton.leaderboard.published.tables import arena_boards
from merton.leaderboard.published.taxonomy import load_taxonomy
from merton_studies.harness.answers import COLUMNS, OPTIONAL, read_answers, score_answers
from merton_studies.harness.captions import COMMON
from merton_studies.harness.measures import label_counts

SCAN = {"agent": "a", "benchmark": "Scan2Cap", "dimension": "Spatial Relationship", "measure": "CIDEr"}
PLAN = {"agent": "a", "benchmark": "PhyBlock", "dimension": "Task Reasoning", "measure": "micro-F1"}
WALK = {"agent": "a", "benchmark": "R2R", "dimension": "Instruction Navigation", "measure": "success rate", "gold": ""}


def table(folder: Path, *rows: Mapping[str, object]) -> Path:
    file = folder / "answers.csv"
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, [*COLUMNS, *OPTIONAL])
        writer.writeheader()
        writer.writerows(rows)
    return file


def scores(folder: Path, *rows: Mapping[str, object]) -> dict[tuple[str, str], float]:
    found = score_answers(read_answers(table(folder, *rows), load_taxonomy())).scores
    return {(one.agent, one.item): one.score for one in found}


def plain_cider(corpus: Sequence[Sequence[str]], right: Sequence[str], said: str) -> float:
    """CIDEr-D from its definition (Vedantam and others 2015, section 4): dictionaries, one n-gram after the other."""

    def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
        found = text.lower().replace(".", "").split()
        return Counter(tuple(found[i : i + n]) for i in range(len(found) - n + 1))

    def weight(gram: tuple[str, ...]) -> float:
        documents = sum(any(gram in grams(text, len(gram)) for text in document) for document in corpus)
        return math.log(len(corpus) / max(1, documents))

    total = 0.0
    for reference in right:
        for n in range(1, 5):
            mine, its = grams(said, n), grams(reference, n)
            dot = sum(min(mine[g], its[g]) * its[g] * weight(g) ** 2 for g in mine)
            norm = math.sqrt(sum((c * weight(g)) ** 2 for g, c in mine.items()))
            norm *= math.sqrt(sum((c * weight(g)) ** 2 for g, c in its.items()))
            gap = len(said.split()) - len(reference.split())
            total += (dot / norm if norm else 0.0) * math.exp(-(gap**2) / 72) / 4
    return 10 * total / len(right)


RIGHT = (
    ["the brown chair is left of the table", "a wooden chair beside the table"],
    ["the lamp stands on the desk near the window"],
    ["the sofa is behind the table", "it is a grey sofa", "the grey sofa behind the low table"],
)
SAID = ("the brown chair is beside the table", "a lamp on the desk", "the grey sofa is behind the table")


def test_cider_of_several_right_answers_is_that_of_a_second_computation(tmp_path: Path) -> None:
    rows = [{**SCAN, "item": str(i), "gold": json.dumps(RIGHT[i]), "answer": SAID[i]} for i in range(3)]
    found = scores(tmp_path, *rows, *({**row, "agent": "b", "answer": "no idea at all"} for row in rows))
    for i in range(3):
        assert found["a", str(i)] == pytest.approx(plain_cider(RIGHT, RIGHT[i], SAID[i]) / 10, abs=1e-12)
        assert 0.1 < found["a", str(i)] < 1.0
        assert found["b", str(i)] == 0.0


def test_cider_by_hand(tmp_path: Path) -> None:
    """Two questions without a common word, so every n-gram of theirs weighs ln 2. Of "red cup here now" against "red
    cup here today" 3 of 4 words, 2 of 3 pairs, 1 of 2 threes and 0 of 1 fours are shared, lengths equal; an n-gram
    that is in no document weighs ln 2, too: 10 (3/4 + 2/3 + 1/2 + 0) / 4 = 4.79167; as a score .479167. The right
    answer of four words has 10, as a score 1."""
    rows = [
        {**SCAN, "item": "1", "gold": "red cup here today", "answer": "red cup here now"},
        {**SCAN, "item": "2", "gold": "blue box below us", "answer": "Blue box below us."},
    ]
    assert scores(tmp_path, *rows) == {
        ("a", "1"): pytest.approx((3 / 4 + 2 / 3 + 1 / 2) / 4),
        ("a", "2"): pytest.approx(1.0),
    }


def test_a_corpus_of_lists_counts_a_list_as_one_document() -> None:
    together, alone = Cider([["a cup", "a red cup"], ["a box"]]), Cider(["a cup", "a red cup", "a box"])
    assert together.score("red cup", "red cup") == pytest.approx(
        plain_cider([["a cup", "a red cup"], ["a box"]], ["red cup"], "red cup")
    )
    assert Cider([["a cup"], ["a box"]]).version == Cider(["a cup", "a box"]).version
    assert together.version != alone.version


def test_each_benchmark_has_its_own_corpus_and_needs_two_questions(tmp_path: Path) -> None:
    rows = [{**SCAN, "item": str(i), "gold": RIGHT[i][0], "answer": SAID[i]} for i in range(3)]
    other = [{**row, "benchmark": "ScanQA", "dimension": "Spatial Localization"} for row in rows[:2]]
    assert scores(tmp_path, *rows, *other).keys() == {("a", str(i)) for i in range(3)}
    both = score_answers(read_answers(table(tmp_path, *rows, *other), load_taxonomy())).scores
    assert [one.score for one in both[:3]] == list(scores(tmp_path, *rows).values())
    with pytest.raises(InputError, match="line 5: ScanQA has one question by CIDEr in the table; its corpus needs two"):
        scores(tmp_path, *rows, other[0])
    with pytest.raises(InputError, match="line 2: gold is empty; CIDEr needs the right answer"):
        scores(tmp_path, {**rows[0], "gold": ""}, rows[1])


def test_a_question_without_a_rare_word_has_no_score(tmp_path: Path) -> None:
    rows = [{**SCAN, "item": str(i), "gold": "a chair", "answer": "a chair"} for i in range(2)]
    found = score_answers(read_answers(table(tmp_path, *rows), load_taxonomy()))
    assert found.scores == ()
    assert [reason for _, reason in found.unscored] == [COMMON, COMMON]


@pytest.mark.parametrize(
    ("right", "said", "counts"),
    [
        ('["pick a", "put b"]', '["Put B.", "pick a"]', (2, 0, 0)),
        ("pick a; put b; push c", "pick a\nlift d", (1, 1, 2)),
        ("A, C", "[A, C, D]", (2, 1, 0)),
        ('["put b", "put b"]', "put b", (1, 0, 1)),
        ("put b", "put b, put b", (1, 1, 0)),
        ("[1, 2]", "1, 3", (1, 1, 1)),
        ("[]", "[]", (0, 0, 0)),
        ("[]", "put b", (0, 1, 0)),
        ("put b", "", (0, 0, 1)),
    ],
)
def test_labels_are_counted(right: str, said: str, counts: tuple[int, int, int]) -> None:
    assert label_counts(right, said) == Counts(*counts)


def test_micro_f1_of_answers_reaches_the_board(tmp_path: Path) -> None:
    """tp 2 + 0, fp 0 + 1, fn 1 + 2: 4 / (4 + 1 + 3) = .5 on the board; the questions' F1 are .8 and 0, mean .4."""
    rows = [
        {**PLAN, "item": "1", "gold": '["a", "b", "c"]', "answer": "a, b"},
        {**PLAN, "item": "2", "gold": '["a", "b"]', "answer": "Final answer: d"},
    ]
    about = {"type": "embodied", "source": "evaluated by the host"}
    out = tmp_path / "scores.csv"
    done = CliRunner().invoke(
        app, ["leaderboard", "answers", str(table(tmp_path, *({**row, **about} for row in rows))), "-o", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert out.read_text().splitlines() == [
        "agent,benchmark,item,dimension,score,type,source,tp,fp,fn",
        "a,PhyBlock,1,Task Reasoning,0.8,embodied,evaluated by the host,2,0,1",
        "a,PhyBlock,2,Task Reasoning,0.0,embodied,evaluated by the host,0,1,2",
    ]
    (board,) = (one for one in arena_boards([out]) if one.name == "benchmark-phyblock")
    (row,) = board.rows
    assert (row.total.score, row.total.n, row.source) == (pytest.approx(50.0), 2, "evaluated by the host")
    with pytest.raises(InputError, match="gold is '--'; list the right labels"):
        scores(tmp_path, {**PLAN, "item": "1", "gold": "--", "answer": "a"})


def test_ends_of_episodes(tmp_path: Path) -> None:
    said = {"1": 1.0, "1.0": 1.0, "True": 1.0, "success": 1.0, "Failure": 0.0, "0": 0.0, "no": 0.0}
    rows = [{**WALK, "item": text, "answer": text} for text in said]
    assert scores(tmp_path, *rows) == {("a", text): score for text, score in said.items()}
    for text in ("0.5", "", "nearly", "2"):
        with pytest.raises(
            InputError, match="success rate is not made of texts: answer must be the end of the episode"
        ):
            scores(tmp_path, {**WALK, "item": "1", "answer": text})


def test_a_metric_of_a_taxonomy_of_ones_own_is_given(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        "extends: embodied_arena\nmetrics: {stars: stars of a person divided by 5}\ntasks:\n"
        "  - name: Embodied Question Answering\n    benchmarks:\n"
        "      - {name: LabQA, metrics: [stars], dimensions: [Object Type]}\n"
    )
    row = {"agent": "a", "benchmark": "LabQA", "item": "1", "dimension": "Object Type", "measure": "stars"}
    taxonomy = load_taxonomy(tmp_path / "lab.yaml")
    (only,) = score_answers(read_answers(table(tmp_path, {**row, "answer": "0.8"}), taxonomy)).scores
    assert only.score == 0.8
    with pytest.raises(InputError, match="line 2: stars is not made of texts: answer must be its score, 0 to 1"):
        read_answers(table(tmp_path, {**row, "answer": "4"}), taxonomy)
