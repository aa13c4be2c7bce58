"""Protocols episodes and trials: a world-model board from people's scores, and verdicts of trials."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.config import validated
from merton.errors import InputError
from merton.leaderboard.published.world_model import evaluate, load_rules, read_ground_truth, read_sheet
from merton_studies.people.item import Item
from merton_studies.people.ledger import Answer, Kind
from merton_studies.people.protocols.episodes import DEFECTS, EpisodeAnswer, Episodes, board_of, suggested
from merton_studies.people.protocols.trials import Trials, TrialVerdict, verdicts

EPISODES, TRIALS = Episodes(), Trials()


def a_video(team: str, task: str, video: str, **facts: str) -> Item:
    names = {"team": team, "task": task, "video": video, **facts}
    return Item(f"{team}/{task}/{video}", f"{task}/{video}", texts={"instruction": "put it in"}, facts=names)


def an_answer(item: Item, rater: str, answer: Mapping[str, Any], number: int = 1, kind: Kind = "design") -> Answer:
    return Answer(f"{rater}-{number}-{item.id}", rater, number, item.id, kind, answer, 9.0, "2026-11-01T10:00:00Z")


def scored(score: int, same: bool = True, defects: Sequence[str] = ()) -> dict[str, Any]:
    found = validated(EpisodeAnswer, {"score": score, "same_outcome": same, "defects": list(defects)}, "answer")
    return found.model_dump(mode="json")


def table(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize(
    ("same", "defects", "score"),
    [
        (True, (), 3),
        (True, ("deformed",), 2),
        (True, ("implausible",), 2),
        (True, ("other_motion",), 2),
        (True, ("chaotic",), 2),
        (True, ("other_motion", "chaotic"), 2),
        (False, (), 1),
        (False, ("deformed", "implausible"), 1),
        (False, ("other_motion",), 0),
        (False, ("chaotic",), 0),
    ],
)
def test_what_was_seen_suggests_a_score(same: bool, defects: Sequence[str], score: int) -> None:
    """The source joins each case of 0 with another final state: a chaotic video with the right end is a 2."""
    assert suggested(same, defects) == score


def test_the_protocol_is_the_rubrics() -> None:
    rules = load_rules()
    assert (EPISODES.panel_raters, EPISODES.panel_items) == (rules.annotators, rules.videos_per_annotator)
    assert list(rules.languages) == ["en", "zh"]
    for words in rules.languages.values():
        assert len(words.examples) == len(words.scores) == 4
        assert tuple(words.defects) == DEFECTS
        assert "{}" in words.for_example
        assert "{}" in words.suggested
    view = EPISODES.view(a_video("secret", "task1", "v"), ())
    assert view["languages"]["en"]["scores"] == list(rules.scores)
    assert "secret" not in json.dumps(view)
    with pytest.raises(InputError, match="at most 3"):
        validated(EpisodeAnswer, {"score": 4, "same_outcome": True}, "answer")


def test_the_board_of_a_hand_computed_example(tmp_path: Path) -> None:
    """Eight tasks of 10 real videos, two teams of which one lacks a video of each task, three annotators."""
    tasks, raters = load_rules().tasks, ("R01", "R02", "R03")
    items = [
        a_video(team, task, f"v{number}", real_videos="10")
        for team in ("alpha", "beta")
        for task in tasks
        for number in range(10 if team == "alpha" else 9)
    ]
    answers = [
        an_answer(item, rater, scored(_plan(item, place)), number)
        for place, rater in enumerate(raters)
        for number, item in enumerate(items, 1)
    ]
    repeat = an_answer(items[0], "R01", scored(0), len(items) + 1, "repeat")
    files = EPISODES.export(items, [*answers, repeat], tmp_path, {rater: rater for rater in raters})
    assert [file.name for file in files] == ["sheet.csv", "counts.csv", "seen.csv"]
    out = tmp_path / "board.json"
    told = CliRunner().invoke(
        app, ["leaderboard", "world-model", str(files[0]), "--ground-truth", str(files[1]), "--out", str(out)]
    )
    assert told.exit_code == 0, told.output
    rows = {row["agent"]: row for row in json.loads(out.read_text(encoding="utf-8"))["boards"][0]["rows"]}
    # alpha: in task1 all 3; in the others half 2 and half 1, but the third annotator gives one point more to the ones
    assert rows["alpha"]["cells"][0]["score"] == pytest.approx(3.0)
    assert rows["alpha"]["cells"][1]["score"] == pytest.approx((5 * 2 + 5 * (1 + 1 + 2) / 3) / 10)
    assert rows["alpha"]["total"]["score"] == pytest.approx((3.0 + 7 * 5 / 3) / 8)
    # beta: nine videos with 1, a tenth that is not there with 0
    assert rows["beta"]["total"]["score"] == pytest.approx(0.9)


def _plan(item: Item, place: int) -> int:
    team, task, video = (item.facts[key] for key in ("team", "task", "video"))
    if team == "beta":
        return 1
    if task == "task1":
        return 3
    return 2 if int(video[1:]) < 5 else 1 + (place == 2)


def test_a_planted_set_comes_back_as_planned(tmp_path: Path) -> None:
    planted = {"removed": 1, "wrong": 1, "chaotic": 0, "deformed": 2, "plain": 3}
    items = [a_video("planted", "task1", video) for video in planted]
    answers = [an_answer(item, "R01", scored(planted[item.facts["video"]])) for item in items]
    sheet, counts, _ = EPISODES.export(items, answers, tmp_path, {})
    assert {row.video: row.score for row in read_sheet(sheet, load_rules())} == planted
    assert read_ground_truth(counts) == {"task1": 5}


def test_scores_beyond_the_rubric_are_left_out_with_a_reason(tmp_path: Path) -> None:
    """A fourth annotator took over from one who left; one has scored an eleventh video."""
    items = [a_video("t", "task1", f"v{number:02d}", real_videos="12") for number in range(11)]
    answers = [an_answer(item, rater, scored(2), n) for rater in ("R01", "R02") for n, item in enumerate(items[:10])]
    answers += [an_answer(items[0], "R03", scored(0))]
    answers += [an_answer(item, "R04", scored(1), n) for n, item in enumerate(items)]
    files = EPISODES.export(items, answers, tmp_path, {"R04": "Dora"})
    board = evaluate(read_sheet(files[0], load_rules()), dict.fromkeys(load_rules().tasks, 11), load_rules()).board
    assert board.rows[0].cells[0].n == 11
    assert read_ground_truth(files[1]) == {"task1": 12}, "the real videos, not those that a team has"
    left = table(files[3])
    assert [(row["annotator"], row["video"], row["reason"]) for row in left] == [
        ("R03", "v00", "the team and task have 3 annotators"),
        ("Dora", "v10", "beyond 10 videos of an annotator"),
    ]


@pytest.mark.parametrize(("ratings", "raters", "most"), [(3, 3, 10), (2, 5, 15), (1, 3, 30), (1, 2, 20)])
def test_videos_of_a_team_and_task_fill_ten_places_of_three_annotators(ratings: int, raters: int, most: int) -> None:
    items = [a_video("alpha", "task1", f"v{number}") for number in range(most)]
    others = [a_video("alpha", "task2", "v0"), a_video("beta", "task1", "v0")]
    EPISODES.check_panels([*items, *others], ratings, raters)
    with pytest.raises(InputError, match=rf"alpha, task1 has {most + 1} items, but in episodes {most} at most with ra"):
        EPISODES.check_panels([*items, a_video("alpha", "task1", "v99")], ratings, raters)
    assert len({EPISODES.panel(item) for item in (*items, *others)}) == 3


def test_a_gold_video_is_of_a_team_that_does_not_compete() -> None:
    """It is in no sheet, and would count 0 as one that was not submitted."""
    gold = replace(a_video("alpha", "task1", "v1"), gold=scored(0, False))
    with pytest.raises(InputError, match="alpha/task1/v1 is a gold item, and 'alpha' has other videos"):
        EPISODES.check_items([a_video("alpha", "task1", "v0"), gold])
    EPISODES.check_items([a_video("beta", "task1", "v0"), gold])


def test_a_task_with_a_video_that_is_not_scored_yet_has_no_number(tmp_path: Path) -> None:
    """Different videos, task names of a host: (3 + 2 + 1) / 4 where the fourth was not submitted, missing before."""
    items = [a_video("alpha", "open the lid", f"v{number}", real_videos="4") for number in range(3)]
    items.append(replace(a_video("control", "open the lid", "v0"), gold=scored(0, False)))
    answers = [an_answer(item, f"R0{place + 1}", scored(3 - place)) for place, item in enumerate(items[:3])]
    (row,) = board_of(items, answers[:2]).evaluation.board.rows
    assert row.cells[0].missing == "2 of 3 submitted videos scored"
    board = board_of(items, answers).evaluation.board
    assert (board.columns, board.rows[0].total.score) == (("open the lid",), pytest.approx(6 / 4))
    assert board.warnings[0] == "The board has 1 task, the challenge 8"
    files = EPISODES.export(items, answers, tmp_path, {})
    rules = load_rules()
    assert evaluate(read_sheet(files[0], rules), read_ground_truth(files[1]), rules).board == board


def test_what_was_seen_stands_beside_the_score(tmp_path: Path) -> None:
    item = a_video("t", "task1", "v")
    answer = an_answer(item, "R01", scored(1, True, ["deformed"]))
    seen = table(EPISODES.export([item], [answer], tmp_path, {})[2])[0]
    assert (seen["score"], seen["suggested"], seen["deformed"], seen["chaotic"]) == ("1", "2", "1", "0")
    assert EPISODES.values(item, answer.answer) == {"score": 1.0, "outcome": "same"}


def a_trial(name: str, recorded: str = "success") -> Item:
    facts = {"run": "r", "trial": name, "agent": "secret", "recorded": recorded}
    return Item(name, "pick.0", texts={"instruction": "pick up the red cube"}, facts=facts)


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("s", "success"),
        ("ssf", "success"),
        ("sff", "failure"),
        ("sf", "unclear"),
        ("suu", "unclear"),
        ("ssuu", "success"),
        ("u", "unclear"),
    ],
)
def test_what_most_raters_say(said: str, verdict: str) -> None:
    words = {"s": "success", "f": "failure", "u": "unclear"}
    item = a_trial("a")
    votes = [an_answer(item, f"R{place}", {"verdict": words[letter]}) for place, letter in enumerate(said)]
    found = verdicts(votes)["a"]
    assert found["verdict"] == verdict
    assert sum(found[name] for name in ("success", "failure", "unclear")) == len(said)


def test_verdicts_of_trials_as_tables(tmp_path: Path) -> None:
    items = [a_trial("a"), a_trial("b", "")]
    answers = [an_answer(item, rater, {"verdict": "failure"}) for item in items for rater in ("R01", "R02")]
    answers.append(an_answer(items[0], "R01", {"verdict": "success"}, 3, "repeat"))
    files = TRIALS.export(items, answers, tmp_path, {"R01": "Ada"})
    assert [(row["trial"], row["recorded"], row["verdict"], row["failure"]) for row in table(files[0])] == [
        ("a", "success", "failure", "2"),
        ("b", "", "failure", "2"),
    ]
    assert "Ada" in files[1].read_text(encoding="utf-8")
    assert "secret" not in json.dumps(TRIALS.view(items[0], ()))
    assert TRIALS.values(items[0], {"verdict": "unclear"}) == {}
    with pytest.raises(InputError, match="verdict"):
        validated(TrialVerdict, {"verdict": "perhaps"}, "answer")
