"""Protocols episodes and trials: a world-model board from people's scores, and verdicts of trials."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
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
from merton_studies.people.protocols.episodes import EXAMPLES, EpisodeAnswer, Episodes, suggested
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
        (True, ("chaotic",), 0),
        (False, (), 1),
        (False, ("deformed", "implausible"), 1),
        (False, ("other_motion",), 0),
        (False, ("chaotic",), 0),
    ],
)
def test_what_was_seen_suggests_a_score(same: bool, defects: Sequence[str], score: int) -> None:
    assert suggested(same, defects) == score


def test_the_protocol_is_the_rubrics() -> None:
    rules = load_rules()
    assert (EPISODES.panel_raters, EPISODES.panel_items) == (rules.annotators, rules.videos_per_annotator)
    assert len(EXAMPLES) == len(rules.scores)
    view = EPISODES.view(a_video("secret", "task1", "v"), ())
    assert [row[:2] for row in view["rubric"]] == [[score, rules.scores[score]] for score in (3, 2, 1, 0)]
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


def test_an_eleventh_video_of_a_team_and_task_is_refused() -> None:
    items = [a_video("alpha", "task1", f"v{number}") for number in range(10)]
    others = [a_video("alpha", "task2", "v0"), a_video("beta", "task1", "v0")]
    EPISODES.check_items([*items, *others])
    with pytest.raises(InputError, match="'alpha' has more than 10 videos of 'task1'"):
        EPISODES.check_items([*items, a_video("alpha", "task1", "v10")])
    assert len({EPISODES.panel(item) for item in (*items, *others)}) == 3


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
