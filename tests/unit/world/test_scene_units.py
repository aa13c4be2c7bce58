"""The unit of a scene: a split of Merton's own, or the task itself, so that other programs' tasks stay apart."""

import pytest

from merton.results.records import TestCase
from merton.world.splits import unit_of
from merton.world.tasks import SPLITS, scene_of, split_and_verb, task_names


def scene(task: str, seed: int = 0) -> str:
    return TestCase(task, seed, "reference", 0).scene


@pytest.mark.parametrize("task", task_names())
def test_recorded_runs_keep_their_clusters(task: str) -> None:
    """The rule before: all in front of the first dash."""
    assert scene(task, 7) == f"{task.partition('-')[0]}.7" == scene_of(task, 7)


def test_tasks_of_other_programs_have_scenes_of_their_own() -> None:
    theirs = (
        "push-v3",
        "push-back-v3",
        "push-wall-v3",
        "drawer-open-v3",
        "drawer-close-v3",
        "test-push-v3",
        "train-",
        "shift",
        "val-pick2",
        "door-lock",
    )
    assert [unit_of(task) for task in theirs] == list(theirs)
    assert len({scene(task) for task in theirs}) == len(theirs)
    assert unit_of("train-station") == "train", (
        "called as a task of a split: `safe_name` gives such a task another name"
    )


def test_a_task_in_a_split_is_one_that_the_grammar_knows() -> None:
    for task in task_names():
        assert (unit_of(task) in SPLITS) == (split_and_verb(task)[0] in SPLITS)
