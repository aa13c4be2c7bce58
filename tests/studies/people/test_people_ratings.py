"""Protocols quality, pairs, labels and likert: what pages get, what is stored, and tables that others read unedited."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr
from typer.testing import CliRunner

from merton.cli.main import app
from merton.config import validated
from merton.errors import InputError, UnknownNameError
from merton.rating.bradley_terry import fit_pairs
from merton_studies.curation.assignment import Assignment, write_assignment
from merton_studies.curation.people import read_ratings
from merton_studies.curation.pool import Pool, write_pool
from merton_studies.curation.question import BenchmarkSource, Question
from merton_studies.curation.taxonomy import Dimension, Taxonomy
from merton_studies.people.item import Item, Medium
from merton_studies.people.ledger import Answer, Kind, Slot
from merton_studies.people.protocol import Protocol
from merton_studies.people.protocols import protocol_named
from merton_studies.people.protocols.labels import Labels
from merton_studies.people.protocols.likert import CRITERIA, Likert
from merton_studies.people.protocols.pairs import Pairs
from merton_studies.people.protocols.quality import Quality

SECRET = "secret-model"


def answer(rater: str, number: int, item: str, content: Mapping[str, Any], kind: Kind = "design") -> Answer:
    return Answer(f"{rater}-{number}", rater, number, item, kind, content, 2.0, "2026-01-01T00:00:00Z")


def exported(protocol: Protocol, items: Iterable[Item], answers: Sequence[Answer], out: Path) -> dict[str, Path]:
    """The files of an export by name."""
    out.mkdir(exist_ok=True)
    names = {one.rater: one.rater for one in answers}
    return {file.name: file for file in protocol.export(tuple(items), answers, out, names)}


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def merton(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def medium(role: str, name: str) -> Medium:
    return Medium(role, "image", Path(name), 64, 48)


@pytest.mark.parametrize("name", ["labels", "likert", "pairs", "quality"])
def test_a_protocol_is_found_by_its_name(name: str) -> None:
    assert protocol_named(name).name == name
    with pytest.raises(UnknownNameError, match="labels"):
        protocol_named("guess")


ITEMS: dict[str, tuple[Item, dict[str, Any]]] = {
    "quality": (Item(SECRET, "s", {"image": medium("image", SECRET)}, {}, {"image": SECRET}), {"score": 3}),
    "pairs": (
        Item(SECRET, "s", {"a": medium("a", "1"), "b": medium("b", "2")}, {"instruction": "Lift it."},
             {"a": SECRET, "b": "other", "case": SECRET}),
        {"choice": "left"},
    ),
    "labels": (
        Item(SECRET, "s", {}, {"title": "Counting", "definition": "How many.", "question": "How many cups?",
                               "choices": "one\ntwo"}, {"question": SECRET, "dimension": SECRET, "assigned": "yes"}),
        {"verdict": "no"},
    ),
    "likert": (
        Item(SECRET, "s", {"video": medium("video", "1")}, {"instruction": "Lift it.", "plan": "1. Lift it."},
             {"model": SECRET, "scenario": SECRET}),
        dict.fromkeys(CRITERIA, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_the_page_gets_nothing_that_would_unblind(name: str) -> None:
    protocol, (item, content) = protocol_named(name), ITEMS[name]
    shown = protocol.shown(item, Slot("R01", 1, item.id, "design", ""), 0)
    view = json.dumps(protocol.view(shown, ()))
    assert SECRET not in view
    assert "assigned" not in view
    stored = protocol.checked(shown, validated(protocol.answer, content, "answer"), ()).model_dump(mode="json")
    assert set(protocol.values(item, stored)) == set(protocol.criteria)
    assert json.loads(json.dumps(stored)) == stored


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("quality", {}),
        ("quality", {"score": 0}),
        ("quality", {"score": 6}),
        ("quality", {"score": 2.5}),
        ("quality", {"score": "3"}),
        ("quality", {"score": 3, "note": "<script>"}),
        ("pairs", {"choice": "best"}),
        ("pairs", {"choice": "a"}),
        ("labels", {"verdict": "maybe"}),
        ("likert", dict.fromkeys(list(CRITERIA)[1:], 3)),
        ("likert", dict.fromkeys(CRITERIA, 3) | {"physical": 6}),
    ],
)
def test_another_answer_is_refused(name: str, content: dict[str, Any]) -> None:
    protocol, (item, _) = protocol_named(name), ITEMS[name]
    shown = protocol.shown(item, Slot("R01", 1, item.id, "design", ""), 0)
    with pytest.raises(InputError):
        protocol.checked(shown, validated(protocol.answer, content, "answer"), ())


@pytest.mark.parametrize(
    ("name", "gold", "near", "far"),
    [
        ("quality", {"score": 5}, {"score": 4}, {"score": 3}),
        ("pairs", {"choice": "a", "left": "a"}, {"choice": "a", "left": "b"}, {"choice": "tie", "left": "a"}),
        ("labels", {"verdict": "yes"}, {"verdict": "yes"}, {"verdict": "no"}),
        ("likert", dict.fromkeys(CRITERIA, 4), dict.fromkeys(CRITERIA, 3), dict.fromkeys(CRITERIA, 2)),
    ],
)
def test_the_known_answer_of_a_gold_item(
    name: str, gold: dict[str, Any], near: dict[str, Any], far: dict[str, Any]
) -> None:
    item = replace(ITEMS[name][0], gold=gold)
    assert protocol_named(name).is_right(item, near)
    assert not protocol_named(name).is_right(item, far)


def test_sides_are_drawn_for_each_rater_and_item_and_exchanged_in_a_repeat() -> None:
    protocol = Pairs()
    left: Counter[str] = Counter()
    of_item: defaultdict[str, set[str]] = defaultdict(set)
    for number in range(200):
        item = replace(ITEMS["pairs"][0], id=f"pair {number % 20}")
        slot = Slot(f"R{number // 20:02d}", number, item.id, "design", "")
        shown, again = protocol.shown(item, slot, 7), protocol.shown(item, replace(slot, kind="repeat", number=900), 7)
        assert shown == protocol.shown(item, slot, 7)
        side = shown.facts["left"]
        left[side] += 1
        of_item[item.id].add(side)
        assert shown.media["a"].file == item.media[side].file
        assert (shown.media["a"].role, shown.media["b"].role) == ("a", "b")
        assert again.facts["left"] != side
        chosen = protocol.checked(shown, validated(protocol.answer, {"choice": "left"}, ""), ())
        assert chosen.model_dump() == {"choice": side, "left": side}
        other = protocol.checked(shown, validated(protocol.answer, {"choice": "right"}, ""), ())
        assert {chosen.model_dump()["choice"], other.model_dump()["choice"]} == {"a", "b"}
    assert 70 < left["a"] < 130
    assert all(sides == {"a", "b"} for sides in of_item.values())  # ten raters of an item do not see the same
    tie = protocol.checked(shown, validated(protocol.answer, {"choice": "tie", "left": "a"}, ""), ())
    assert tie.model_dump() == {"choice": "tie", "left": shown.facts["left"]}


def test_the_known_answer_of_a_pair_is_a_contender() -> None:
    item = ITEMS["pairs"][0]
    Pairs().check_items([item, replace(item, gold={"choice": "b", "left": None})])
    with pytest.raises(
        InputError, match=r"'secret-model' has the choice 'left'; it must be a \(secret-model\), b \(other\)"
    ):
        Pairs().check_items([replace(item, gold={"choice": "left", "left": None})])


NAMES = ("best", "good", "fair", "=poor")


def preferences() -> tuple[list[Item], list[Answer]]:
    """Four contenders on twelve scenes by three raters; the last two answers are a repeat and a gold item's."""
    rng = np.random.default_rng(3)
    items = [
        Item(f"{scene}: {i}{j}", f"scene {scene}", {}, {}, {"a": NAMES[i], "b": NAMES[j], "case": f"case {scene}"})
        for scene in range(12) for i in range(4) for j in range(i + 1, 4)
    ]  # fmt: skip
    answers = []
    for rater in ("R01", "R02", "R03"):
        for number, item in enumerate(items, 1):
            choice = str(rng.choice(["a", "b", "tie", "both_bad"], p=[0.7, 0.15, 0.1, 0.05]))
            answers.append(answer(rater, number, item.id, {"choice": choice, "left": "ab"[number % 2]}))
    first = answers[0]
    answers.append(answer("R01", 500, first.item, {"choice": "b", "left": "a"}, "repeat"))
    answers.append(answer("R04", 1, first.item, {"choice": "b", "left": "a"}, "gold"))
    return items, answers


def test_pairs_become_a_board_with_intervals_over_scenes(tmp_path: Path) -> None:
    items, answers = preferences()
    files = exported(Pairs(), items, answers, tmp_path / "out")
    table = rows(files["ranking.csv"])
    assert [row["contender"] for row in table] == ["best", "good", "fair", "'=poor"]
    facts = {item.id: (item.facts["a"], item.facts["b"], item.scene) for item in items}
    points = {"a": 1.0, "b": 0.0, "tie": 0.5, "both_bad": 0.5}
    own = fit_pairs((*facts[one.item][:2], points[one.answer["choice"]], facts[one.item][2]) for one in answers[:-2])
    for row in table:
        found = own.contenders[row["contender"].removeprefix("'")]
        assert float(row["rating"]) == pytest.approx(found.mean, abs=1e-6)
        assert (float(row["low"]), float(row["high"])) == pytest.approx(found.interval, abs=1e-6)
        assert sum(int(row[kind]) for kind in ("wins", "losses", "ties", "both_bad")) == int(row["comparisons"]) == 108
        assert row["scenes"] == "12"
    assert len(rows(files["pairs.csv"])) == len(answers) - 2
    about = json.loads(files["ranking.json"].read_text())
    decided = [one.answer for one in answers[:-2] if one.answer["choice"] in ("a", "b")]
    assert about["left"]["n"] == len(decided)
    assert about["left"]["share"] == pytest.approx(np.mean([one["choice"] == one["left"] for one in decided]))
    again = exported(Pairs(), items, list(reversed(answers)), tmp_path / "again")
    assert {name: file.read_bytes() for name, file in again.items()} == {
        name: file.read_bytes() for name, file in files.items()
    }


def test_preferences_stand_on_a_leaderboard_without_an_edit(tmp_path: Path) -> None:
    items, answers = preferences()
    items = [replace(item, facts={**item.facts, "b": item.facts["b"].lstrip("=")}) for item in items]
    files = exported(Pairs(), items, answers, tmp_path / "out")
    board = tmp_path / "board.json"
    merton("leaderboard", "show", files["matrix.csv"], "--out", board)
    agents = {agent["id"]: agent for agent in json.loads(board.read_text())["agents"]}
    for row in rows(files["ranking.csv"]):
        assert agents[row["contender"]]["likelihood"]["mean"] == pytest.approx(float(row["rating"]), abs=30)
    assert list(agents) == ["best", "good", "fair", "poor"]


DIMENSIONS = ("Colour", "Count")


def curation(folder: Path, questions: int) -> Assignment:
    """A curated benchmark: two questions a scene, half of them assigned to each dimension."""
    taxonomy = Taxonomy(
        name="two", dimensions=tuple(Dimension(name=name, definition=f"{name}.") for name in DIMENSIONS)
    )
    ids = tuple(f"q{number:02d}" for number in range(questions))
    own = tuple(DIMENSIONS[number % 2] for number in range(questions))
    none = np.zeros(questions, bool)
    assignment = Assignment(
        taxonomy, ("v",), ids, tuple((name,) for name in own), ((),) * questions, own, np.ones(questions), none, none
    )
    pool = [
        Question(id=name, source="secret", text="?", answer_kind="free_text", scene=f"scene {number // 2}")
        for number, name in enumerate(ids)
    ]
    write_pool(Pool.of(pool, [BenchmarkSource(name="secret")]), folder)
    write_assignment(assignment, folder / "assignments.parquet")
    return assignment


def test_labels_go_through_curate_agreement_without_an_edit(tmp_path: Path) -> None:
    from sklearn.metrics import cohen_kappa_score  # here: it takes a second, in every worker that collects this file

    assignment = curation(tmp_path / "curation", 40)
    items = [
        Item(f"{dimension}: {name}", name, {}, {}, {"question": name, "dimension": dimension})
        for name in assignment.ids for dimension in DIMENSIONS
    ]  # fmt: skip
    own = dict(zip(assignment.ids, assignment.dimension, strict=True))
    truth = ["yes" if own[item.facts["question"]] == item.facts["dimension"] else "no" for item in items]
    rng = np.random.default_rng(5)
    answers, votes = [], np.empty((len(items), 5), dtype="<U3")
    for rater, skill in enumerate((0.95, 0.9, 0.9, 0.85, 0.8)):
        for number, (item, right) in enumerate(zip(items, truth, strict=True), 1):
            verdict = right if rng.random() < skill else {"yes": "no", "no": "yes"}[right]
            votes[number - 1, rater] = verdict
            answers.append(answer(f"R{rater + 1:02d}", number, item.id, {"verdict": verdict}))
    answers.append(answer("R01", 900, items[0].id, {"verdict": "no"}, "repeat"))
    answers.append(answer("R02", 901, items[0].id, {"verdict": "no"}, "gold"))
    sheet = exported(Labels(), items, answers, tmp_path / "out")["verification.csv"]
    told = merton("curate", "agreement", sheet, "--assignments", tmp_path / "curation")
    majority = np.where((votes == "yes").sum(axis=1) > 2, "yes", "no")
    for dimension in DIMENSIONS:
        chosen = [place for place, item in enumerate(items) if item.facts["dimension"] == dimension]
        kappa = cohen_kappa_score([truth[place] for place in chosen], majority[chosen])
        line = next(line for line in told.splitlines() if line.startswith(dimension))
        assert f"people and assignment {kappa:.2f}" in line
        assert f"{len(chosen)} questions" in line
    assert "Fleiss, 80 questions" in told


MODELS, SCENARIOS, RATERS = 13, 8, 5


def likert_study(noise: float) -> tuple[list[Item], list[Answer], np.ndarray]:
    """Models with planted means from 1.6 to 4.6, worst first; (models, scenarios, raters, criteria) marks."""
    rng = np.random.default_rng(11)
    planted = np.linspace(1.6, 4.6, MODELS)[:, None, None, None]
    bias = rng.normal(0.0, 0.3 * noise, (1, 1, RATERS, 1))
    marks = planted + bias + rng.normal(0.0, noise, (MODELS, SCENARIOS, RATERS, len(CRITERIA)))
    # without noise a mark is the planted mean: 1.6 becomes as many ones and twos as it takes
    steps = np.arange(SCENARIOS * len(CRITERIA)).reshape(1, SCENARIOS, 1, len(CRITERIA)) / (SCENARIOS * len(CRITERIA))
    marks = np.clip(np.floor(marks + steps), 1, 5).astype(int)
    items = [
        Item(f"{model}/{scenario}", f"s{scenario}", {}, {}, {"model": f"m{model:02d}", "scenario": f"s{scenario}"})
        for model in range(MODELS) for scenario in range(SCENARIOS)
    ]  # fmt: skip
    answers = [
        answer(f"R{rater + 1:02d}", number, item.id,
               dict(zip(CRITERIA, marks[divmod(number - 1, SCENARIOS)][rater].tolist(), strict=True)))
        for rater in range(RATERS) for number, item in enumerate(items, 1)
    ]  # fmt: skip
    return items, answers, marks


@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_likert_reproduces_the_alignment_of_a_planted_ranking(tmp_path: Path, noise: float) -> None:
    """A2Eval, appendix E.7, computed here from the raters' marks themselves, and printed by `merton curate ranking`."""
    items, answers, marks = likert_study(noise)
    answers.append(answer("R01", 900, items[0].id, dict.fromkeys(CRITERIA, 5), "repeat"))
    file = exported(Likert(), items, answers, tmp_path / "out")["ratings.csv"]
    found, _ = read_ratings(file)
    mean = marks.mean(axis=3).mean(axis=2).mean(axis=1)
    scores = 100.0 * (mean - 1.0) / 4.0
    assert {one.model: one.score for one in found} == pytest.approx(
        {f"m{model:02d}": score for model, score in enumerate(scores)}
    )
    assert all((one.scenarios, one.raters, one.marks) == (SCENARIOS, RATERS, 320) for one in found)
    if not noise:
        assert [one.model for one in found] == [f"m{model:02d}" for model in reversed(range(MODELS))]
    benchmark = np.random.default_rng(2).permuted(np.linspace(30.0, 70.0, MODELS).reshape(1, -1), axis=1)[0]
    benchmark += 3.0 * np.arange(MODELS)
    table = tmp_path / "scores.csv"
    table.write_text("model,score\n" + "".join(f"m{model:02d},{score}\n" for model, score in enumerate(benchmark)))
    told = merton("curate", "ranking", table, "--human", file)
    assert f"curated and people: Spearman's rho {spearmanr(benchmark, scores).statistic:.3f} [" in told
    assert f"curated and people: Kendall's tau-b {kendalltau(benchmark, scores).statistic:.3f} [" in told


def test_two_plans_of_a_model_in_one_scenario_are_refused(tmp_path: Path) -> None:
    item = ITEMS["likert"][0]
    with pytest.raises(InputError, match="'secret-model' has two items of scenario 'secret-model'"):
        exported(Likert(), [item, replace(item, id="another")], [], tmp_path / "out")


def test_each_opinion_of_quality_is_there(tmp_path: Path) -> None:
    item = ITEMS["quality"][0]
    table = rows(
        exported(Quality(), [item], [answer("R01", 1, item.id, {"score": 4})], tmp_path / "out")["quality.csv"]
    )
    assert [(row["image"], row["rater"], row["score"]) for row in table] == [(SECRET, "R01", "4")]
