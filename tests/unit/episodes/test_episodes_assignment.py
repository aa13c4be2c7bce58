"""Which condition the next episode of a scene gets: balance, pairs, seeds, interruptions and sessions side by side."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scripted_episodes import act, carry_out

from merton.episodes.assignment import Assignment, turned_order
from merton.episodes.design import UNDISTORTED, Condition, Design
from merton.episodes.folder import EpisodesFolder
from merton.episodes.run import EpisodesRun
from merton.errors import InputError

NAMES = ("gaussian_blur", "jpeg", "max_darken", "white_noise", "frozen")
DESIGN = Design(name="some", seed=5, distortions=NAMES[:3], levels=(1, 4))


def given(design: Design, scenes: list[int], visits: int) -> list[list[Condition | None]]:
    """The conditions of each pass over the scenes."""
    assignment = Assignment(design)
    passes = []
    for _ in range(visits):
        row = []
        for scene in scenes:
            condition = assignment.next("a", "push-v3", scene)
            if condition is not None:
                assert assignment.take("a", "push-v3", scene, condition)
            row.append(condition)
        passes.append(row)
    return passes


def test_every_scene_gets_every_condition_once_and_the_undistorted_one_first() -> None:
    first, *later, beyond = given(DESIGN, list(range(7)), 8)
    assert first == [UNDISTORTED] * 7
    assert beyond == [None] * 7
    for scene, conditions in enumerate(zip(*later, strict=True)):
        assert sorted(conditions) == sorted(DESIGN.conditions("push-v3", scene))


@pytest.mark.parametrize("scenes", range(1, 14))
def test_in_each_pass_every_condition_is_given_as_often_to_within_one(scenes: int) -> None:
    for row in given(DESIGN, list(range(scenes)), 7)[1:]:
        often = Counter(dict.fromkeys(DESIGN.conditions("push-v3", 0), 0))
        often.update(row)
        assert max(often.values()) - min(often.values()) <= 1


@pytest.mark.parametrize("count", [2, 3, 4, 5, 9, 10, 21, 40, 68])
def test_over_all_passes_so_far_conditions_stay_near_each_other(count: int) -> None:
    """Where a run ends before its last pass, no condition has been given often and another never."""
    sums, worst = np.zeros((count, count), int), 0
    for scene in range(count):
        order = turned_order(0, "push-v3", scene, count)
        assert sorted(order) == list(range(count))
        for passes in range(count):
            sums[passes, order[: passes + 1]] += 1
        worst = max(worst, int((sums.max(axis=1) - sums.min(axis=1)).max()))
    assert (sums == np.arange(1, count + 1)[:, None]).all()
    assert worst <= (1 if count <= 4 else 2 if count <= 9 else 4 if count <= 40 else 5)


def test_the_order_of_visits_does_not_matter() -> None:
    scenes = list(range(6))
    straight = {(scene, visit): row[scene] for visit, row in enumerate(given(DESIGN, scenes, 7)) for scene in scenes}
    assignment, seen, mixed = Assignment(DESIGN), Counter(), {}
    for scene in np.random.default_rng(1).permutation(np.repeat(scenes, 7)).tolist():
        mixed[scene, seen[scene]] = condition = assignment.next("a", "push-v3", scene)
        assert condition is not None
        assignment.take("a", "push-v3", scene, condition)
        seen[scene] += 1
    assert mixed == straight


def test_all_agents_and_no_other_seed_have_one_order() -> None:
    orders = [Assignment(DESIGN.model_copy(update={"seed": seed})).order("push-v3", 0) for seed in range(20)]
    assert len(set(orders)) > 5
    assignment = Assignment(DESIGN)
    for agent in ("a", "b"):
        for condition in assignment.order("push-v3", 3):
            assert assignment.next(agent, "push-v3", 3) == condition
            assignment.take(agent, "push-v3", 3, condition)


def test_neighbouring_scenes_begin_otherwise() -> None:
    begins = [Assignment(DESIGN).order("push-v3", scene)[1] for scene in range(6)]
    assert all(one != other for one, other in pairwise(begins))


def test_a_lost_condition_is_given_again_and_the_rest_follow(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        order = Assignment(DESIGN).order("push-v3", 0)
        first = run.begin("a", "push-v3", 0)
        act(first)
        assert first.lost("the policy's server died")
        assert not first.end(True)
        again = run.begin("a", "push-v3", 0)
        assert first.condition == again.condition == UNDISTORTED
        again.end(True)
        one, other = run.begin("a", "push-v3", 0), run.begin("a", "push-v3", 0)
        assert (one.condition, other.condition) == order[1:3]
        one.lost("the policy's server died")
        assert run.begin("a", "push-v3", 0).condition == order[1]
        other.end(False)
    found = EpisodesFolder.read(tmp_path / "run")
    assert (found.counts.recorded, found.counts.lost) == (2, 3)
    assert {record.case.distortion for record in found.records()} == {"reference", order[2].distortion}


def test_an_interrupted_run_gives_what_an_uninterrupted_one_gives(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "whole") as run:
        whole = carry_out(run, range(3), 4, steps=1)
    EpisodesRun.create(tmp_path, DESIGN, "parts").close()
    found = []
    for _ in range(4):
        with EpisodesRun.open(tmp_path / "parts") as run:
            found += carry_out(run, range(3), 1, steps=1)
    assert found == whole


def test_sessions_side_by_side_never_get_one_condition_twice(tmp_path: Path) -> None:
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:

        def session(number: int) -> tuple[int, Condition, bool]:
            episode = run.begin("a", "push-v3", number % 3)
            act(episode, 1)
            episode.end(True)
            return number % 3, episode.condition, episode.recorded

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(session, range(27)))
    counted = [(scene, condition) for scene, condition, recorded in found if recorded]
    assert len(counted) == len(set(counted)) == 21
    assert [condition for _, condition, recorded in found if not recorded] == [UNDISTORTED] * 6


def test_beyond_the_design_episodes_pass_undistorted_and_in_no_record(tmp_path: Path) -> None:
    design = Design(name="some", distortions=("jpeg",), levels=(5,))
    with EpisodesRun.create(tmp_path, design, "run") as run:
        carry_out(run, range(2), 2)
        beyond = run.begin("policy", "push-v3", 1)
        assert (beyond.condition, beyond.recorded, beyond.asks_clean(0)) == (UNDISTORTED, False, False)
        act(beyond)
        beyond.end(True)
        assert run.counts.beyond == 1
    assert len(EpisodesFolder.read(tmp_path / "run").records()) == 4


def test_a_condition_that_is_asked_for_is_given_and_recorded_once(tmp_path: Path) -> None:
    asked = Condition("gaussian_blur", 2)
    with EpisodesRun.create(tmp_path, DESIGN, "run") as run:
        for _ in range(2):
            episode = run.begin("a", "push-v3", 0, asked)
            act(episode)
            episode.end(True)
            assert episode.condition == asked
            assert not episode.is_clean
        assert (run.counts.recorded, run.counts.beyond) == (1, 1)
        for wrong in (Condition("gausian_blur", 2), Condition("gaussian_blur", 6), Condition("jpeg", 2, "cameras.x")):
            with pytest.raises(InputError, match=r"did you mean|must be one of 0|unknown part"):
                run.begin("a", "push-v3", 0, wrong)
        assert run.counts.begun == 2
