"""Two runs compared: laws of the differences, the finding in words, and what differs in their settings."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import compared_coverage
import pytest

from merton.errors import InputError
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study import changed_settings, compared_page, compared_words
from merton.study.changed_settings import Change, Settings, changes
from merton.study.compared import QUANTITIES, AgentPair, Comparison, Difference, compared

TYPES = ("jpeg", "white_noise")


def records(wins: dict[str, tuple[int, int]], scenes: int = 12, first: int = 0) -> list[TrialRecord]:
    """Agents that succeed in the first so many scenes of 12, undistorted and distorted by two types."""
    made = []
    for agent, (before, after) in wins.items():
        for scene in range(first, first + scenes):
            for case in (
                TestCase("pick", scene, "reference", 0),
                *(TestCase("pick", scene, name, 5) for name in TYPES),
            ):
                won = scene - first < (before if case.is_reference else after)
                made.append(TrialRecord("run", agent, case, Outcome.SUCCESS if won else Outcome.FAILURE))
    return made


def all_parts(comparison: Comparison) -> list[Difference]:
    rows = [*comparison.agents, *(row for part in comparison.breakdowns for own in part.groups.values() for row in own)]
    return [part for row in rows for quantity in QUANTITIES if (part := row.of(quantity))]


def test_a_run_against_itself_is_exactly_alike() -> None:
    run = records({"servo": (10, 5), "other": (12, 3)})
    found = compared(run, run)
    assert {part.value for part in all_parts(found)} == {0.0}
    assert not any(part.is_beyond_chance or part.changed for part in all_parts(found))
    assert (found.flips, found.cases_only, found.faults) == ([], (0, 0), (0, 0))
    assert compared_words.finding(found) == "No outcome differs in the 72 trials that both have."


@pytest.mark.parametrize("shift", [0, 100])
def test_swapped_runs_negate_every_difference(shift: int) -> None:
    one, other = records({"servo": (10, 5)}), records({"servo": (11, 9)}, first=shift)
    forth, back = (all_parts(compared(*pair)) for pair in ((one, other), (other, one)))
    assert forth[0].is_paired is (shift == 0)
    for here, there in zip(forth, back, strict=True):
        assert there.value == pytest.approx(-here.value)
        assert there.interval == pytest.approx((-here.interval.high, -here.interval.low))


def test_the_numbers_of_a_planted_difference() -> None:
    found = compared(records({"servo": (10, 2)}), records({"servo": (10, 10)}))
    row = found.agents[0]
    assert row.undistorted is not None
    assert row.distorted is not None
    assert row.drop is not None
    assert (row.undistorted.first, row.undistorted.second, row.undistorted.changed) == (10 / 12, 10 / 12, 0)
    assert (row.distorted.first, row.distorted.second, row.distorted.changed) == (2 / 12, 10 / 12, 16)
    assert (row.distorted.cases, row.distorted.scenes, row.distorted.is_paired) == (24, 12, True)
    assert (row.drop.first, row.drop.second) == (pytest.approx(8 / 12), 0.0)
    assert row.drop.interval.high < 0.0 < row.distorted.interval.low
    assert len(found.flips) == 16
    assert {(one.case, one.success, other.success) for one, other in found.flips} == {
        (TestCase("pick", scene, name, 5), False, True) for scene in range(2, 10) for name in TYPES
    }
    text = compared_words.finding(found)
    assert text.startswith("servo is better in B by 67 points ["), text
    assert "17 → 83 % of distorted trials in 12 scenes (drop 67 → 0 points)." in text.replace("\u00a0", " ")


def test_a_worse_agent_has_a_positive_number_of_points_and_its_interval() -> None:
    text = compared_words.finding(compared(records({"servo": (10, 10)}), records({"servo": (10, 2)})))
    low, high = map(int, re.findall(r"worse in B by 67 points \[(\d+), (\d+)\]", text)[0])
    assert 0 < low < 67 < high


def test_one_of_several_agents_is_found_with_a_wider_interval() -> None:
    still = {"a": (10, 6), "b": (10, 6), "c": (9, 3)}
    found = compared(records({**still, "servo": (10, 2)}), records({**still, "servo": (10, 10)}))
    text = compared_words.finding(found)
    assert text.startswith("servo is better in B"), text
    assert text.endswith("the others are not told apart.")
    difference = found.agents[-1].distorted
    assert difference is not None
    assert difference.among(1) == pytest.approx(difference.interval)
    assert difference.among(4).low < difference.interval.low
    assert "one test of 4 agents" in " ".join(compared_words.remarks(found))


def test_a_small_difference_is_not_resolved_and_says_what_would() -> None:
    text = compared_words.finding(compared(records({"servo": (10, 5)}), records({"servo": (10, 6)})))
    assert text.replace("\u00a0", " ").startswith("Not resolved: servo, 42 → 50 % of distorted trials, +8 points [−")
    needed = re.search(r"12 scenes were compared, about (\d+) would tell\.$", text)
    assert needed, text
    assert int(needed[1]) > 12


@pytest.mark.parametrize(("won", "words"), [(12, "too easy"), (0, "too hard")])
def test_a_ceiling_and_a_floor_show_nothing(won: int, words: str) -> None:
    run = records({"servo": (won, won)})
    assert words in compared_words.finding(compared(run, run))


def test_only_common_cases_count_and_the_others_are_said() -> None:
    one, other = records({"servo": (10, 5), "old": (1, 1)}), records({"servo": (8, 8), "new": (1, 1)}, scenes=8)
    found = compared(one, other)
    assert found.agents[0].distorted is not None
    assert (found.agents[0].distorted.cases, found.agents[0].distorted.scenes) == (16, 8)
    assert (found.agents[0].distorted.first, found.cases_only) == (5 / 8, (12, 0))
    assert (found.only_first, found.only_second) == (["old"], ["new"])
    text = " ".join(compared_words.remarks(found))
    assert "Only in A: 1 agent (old)." in text
    assert "Only in B: 1 agent (new)." in text
    assert "12 in A, 0 in B" in text


def test_other_scenes_are_independent_samples() -> None:
    found = compared(records({"servo": (10, 2)}), records({"servo": (10, 10)}, first=100))
    assert not any(part.is_paired for part in all_parts(found))
    assert found.flips == []
    assert found.agents[0].distorted is not None
    assert found.agents[0].distorted.is_beyond_chance
    assert "Unpaired" in " ".join(compared_words.remarks(found))


def test_faults_are_left_out_and_counted() -> None:
    one, other = records({"servo": (10, 5)}), records({"servo": (10, 5)})
    other[1] = replace(other[1], outcome=Outcome.INFRASTRUCTURE)
    found = compared(one, other)
    assert found.agents[0].distorted is not None
    assert found.agents[0].distorted.cases == 23
    assert (found.faults, found.flips) == ((0, 1), [])


def test_an_agent_that_looks_at_nothing_is_a_control() -> None:
    blind = (frozenset(("blind",)),) * 2
    same = compared(
        records({"servo": (10, 5), "blind": (12, 12)}), records({"servo": (10, 5), "blind": (12, 12)}), (), blind
    )
    assert [row.pair.first for row in same.candidates] == ["servo"]
    assert compared_words.control(same) == []
    broken = compared(
        records({"servo": (10, 5), "blind": (12, 12)}), records({"servo": (10, 5), "blind": (2, 2)}), (), blind
    )
    assert compared_words.finding(broken).startswith("Not resolved")
    assert "blind looks at nothing and differs by −83 points" in compared_words.control(broken)[0]


def test_agents_of_other_names_are_paired() -> None:
    one, other = records({"old": (10, 2), "hold": (0, 0)}), records({"new": (10, 10), "hold": (0, 0)})
    hold = (frozenset(("hold",)),) * 2
    assert [row.pair for row in compared(one, other, (), hold).agents] == [
        AgentPair("old", "new"),
        AgentPair("hold", "hold"),
    ]
    named = compared(one, other, [AgentPair("old", "new")])
    assert compared_words.finding(named).startswith("new in B is better than old in A by 67 points")
    with pytest.raises(InputError, match="B has no agent 'nwe'; did you mean 'new'"):
        compared(one, other, [AgentPair("old", "nwe")])
    with pytest.raises(InputError, match="no agent in common: A has a, b; B has c, d; name two with --agents a=c"):
        compared(records({"a": (1, 1), "b": (1, 1)}), records({"c": (1, 1), "d": (1, 1)}))


def test_levels_of_a_staircase_are_left_out() -> None:
    found = compared(records({"servo": (10, 2)}), records({"servo": (10, 10)}), is_staircase=True)
    assert found.quantity == "undistorted"
    assert found.agents[0].distorted is None


def test_the_finding_errs_as_often_as_it_says() -> None:
    """The simulation of tools/studies with few studies: no finding where nothing differs, and one where much does."""
    assert compared_coverage.found_rate(points=0.0, agents=2, scenes=12, studies=8) <= 0.25
    assert compared_coverage.found_rate(points=0.6, agents=1, scenes=20, studies=3) == 1.0


def test_settings_that_differ_and_no_others() -> None:
    one = Settings({"seed": "1", "tasks": "pick, place", "scenes": "4"}, {"servo": "gaze + servo"}, {"merton": "1"})
    other = Settings({"seed": "2", "tasks": "pick, push", "scenes": "4"}, {"servo": "gaze + servo@b"}, {"merton": "1"})
    assert changes(one, other, [AgentPair("servo", "servo")]) == [
        Change("agent servo", "gaze + servo", "gaze + servo@b"),
        Change("seed", "1", "2"),
        Change("tasks", "place (and 1 in both)", "push (and 1 in both)"),
    ]
    assert changes(one, one, [AgentPair("servo", "servo")]) == []
    record = Settings({"seed": "2"}, {}, {}, is_partial=True)
    assert changes(one, record, []) == [Change("seed", "1", "2")]


def test_settings_of_a_run_need_no_catalogue(tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text("name: x\ntasks: [pick]\nagents:\n  - {id: mine, vla: in-no-catalogue}\n")
    facts = {"id": "x", "created": "2026-01-01", "merton": "1", "seed": 3, "design": {"levels": [0, 5]}, "cores": 2}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    with ResultStore(tmp_path / "results.sqlite") as store:
        found = changed_settings.settings(store, tmp_path)
    assert found.agents == {"mine": "describe + in-no-catalogue"}
    assert found.experiment == {"name": "x", "tasks": "pick", "distortions": "", "levels": "0, 5", "seed": "3"}
    assert found.system == {"merton": "1"}


def test_the_page_and_json_have_the_numbers(tmp_path: Path) -> None:
    found = compared(records({"se<rvo": (10, 2)}), records({"se<rvo": (10, 10)}))
    picture = tmp_path / "a" / "trials" / "se<rvo.pick.2.jpeg.5" / "00_top_distorted.jpg"
    picture.parent.mkdir(parents=True)
    picture.touch()
    sides = (compared_page.Side("run a", tmp_path / "a"), compared_page.Side("run b"))
    text = compared_page.page(found, [Change("seed", "1", "2")], sides, ["B is unfinished."], tmp_path / "b")
    assert "<h1>se&lt;rvo is better in B by 67 points [" in text
    assert "B is unfinished." in text
    assert '<a href="../a/trials/se%3Crvo.pick.2.jpeg.5/00_top_distorted.jpg">top 0' in text
    assert text == compared_page.page(found, [Change("seed", "1", "2")], sides, ["B is unfinished."], tmp_path / "b")
    values = json.loads(json.dumps(compared_page.as_json(found, [], sides, [])))
    assert values["agents"][0]["distorted"]["difference"] == pytest.approx(8 / 12)
    assert set(values["by"]) == {"distortion"}
    assert len(values["flips"]) == 16


def test_the_axis_of_differences_holds_every_interval() -> None:
    found = compared(records({"servo": (10, 2)}), records({"servo": (10, 10)}))
    end = compared_page.axis_end(found)
    assert (
        max(
            abs(side) for row in found.agents for name in QUANTITIES if (part := row.of(name)) for side in part.interval
        )
        <= end
    )
    assert 'cx="50.00%"' in compared_page.difference_bar(Difference(0.5, 0.5, (-0.1, 0.1), True, 1, 1), end)  # type: ignore[arg-type]
