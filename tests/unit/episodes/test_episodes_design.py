"""The design of a run of episodes: what it accepts, what it refuses and where, and the conditions of a scene."""

from pathlib import Path

import pytest

from merton.config import load, loads
from merton.episodes.design import UNDISTORTED, Condition, Design
from merton.errors import FileError
from merton.experiment.parts import dissection
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, drawn_level
from merton.experiment.subsets import WHOLE, Later, Steps
from sources import ROOT

EXAMPLE = ROOT / "config/designs/example.yaml"


def design(**values: object) -> Design:
    return Design.model_validate({"name": "some", "distortions": ("gaussian_blur",), "levels": (0, 3), **values})


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("name: a\ndistortions: [gausian_blur]", 2, "did you mean 'gaussian_blur'"),
        ("name: a\nlevels: staircase", 2, "another program decides which scene is next"),
        ("name: a\nlevels: [0, 6]", 2, "must be at most 5, got 6"),
        ("name: a\nlevels: [2.5]", 2, "must be a whole number"),
        ("name: a\nlevels: two", 2, "must be 'one' or a list of levels"),
        ("name: a\ndistort:\n  stages: [cognition]", 3, "have the stage 'decision' alone"),
        ("name: a\ndistort:\n  steps: [0, -1]", 3, "must be at least 0, got -1"),
        ("name: a\ndistort:\n  cameras: [top, top]", 3, "camera 'top' is listed twice"),
        ("name: a\ndistort:\n  regions: [things]", 3, "valid keys are: cameras, steps, stages"),
        ("name: a\nattribute: [cameras]", 2, "needs at least two cameras listed in distort.cameras"),
        ("name: a\nattribute: [regions]", 2, "must be 'cameras' or 'steps'"),
        ("name: a\nattribute: [steps]\ndistort: {steps: [2]}", 2, "needs at least two steps"),
        ("name: a\nconvention: libreo", 2, "did you mean 'libero'"),
        ("name: a\nclean_every: -1", 2, "must be at least 0, got -1"),
        ("name: a\nspread: [0.1, -2.0]", 2, "must be at least 0, got -2"),
        ("name: a\ndistortions: [depth_scale]", 2, "acts on depth"),
        ("name: a\ndistortions: [frozen]\ndistort: {steps: [0]}", 2, "acts from step 1 on"),
        ("name: a\nepisodes: 3", 2, "unknown key"),
        ("name: Push It", 1, "lower-case letters"),
    ],
)
def test_a_mistake_is_refused_at_its_line(text: str, line: int, sentence: str) -> None:
    with pytest.raises(FileError, match=rf"^d\.yaml, line {line}: ") as refused:
        loads(text, Design, "d.yaml")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_example_that_is_shipped_is_a_design() -> None:
    shipped = load(EXAMPLE, Design)
    assert {condition.distortion for condition in shipped.conditions("push-v3", 0)} == set(shipped.distortions)


def test_a_scene_has_every_distortion_at_every_level_above_0() -> None:
    found = design(distortions=("gaussian_blur", "frozen"), levels=(5, 0, 2)).conditions("push-v3", 4)
    assert found == tuple(Condition(name, level) for name in ("gaussian_blur", "frozen") for level in (2, 5))


def test_one_level_is_that_of_experiments() -> None:
    one = design(levels="one", seed=8)
    levels = [one.conditions("push-v3", scene)[0].level for scene in range(40)]
    assert levels == [drawn_level(8, "push-v3", scene, "gaussian_blur") for scene in range(40)]
    assert set(levels) == {1, 2, 3, 4, 5}


def test_parts_have_the_names_that_an_attribution_of_trials_gives_them() -> None:
    spec = ExperimentSpec(
        name="x",
        agents=(AgentSpec(id="a", vla="servo"),),
        tasks=("pick",),
        distortions=("gaussian_blur",),
        max_steps=6,
        distort=DistortedPart(cameras=("top", "wrist"), steps=(0, 2, 3, 5)),
    )
    theirs = dissection(spec, spec.agents[0], ("cameras", "steps"), 3)
    own = design(
        attribute=("steps", "cameras"), step_parts=3, distort={"cameras": ("top", "wrist"), "steps": (0, 2, 3, 5)}
    ).dissection
    assert {name for game in theirs.games for name in game.designs.values()} == {
        name for game in own.games for name in game.designs.values()
    }
    assert [game.designs for game in own.games if game.axis == "steps"] == [
        game.designs for game in theirs.games if game.axis == "steps"
    ]
    assert own.prefixes == {0: "steps.0", 2: "steps.0+2", 3: WHOLE}, "from 3 on images are clean"


def test_without_listed_steps_the_last_part_is_all_later_ones() -> None:
    parts = design(attribute=("steps",), step_parts=3)
    assert [game.parts for game in parts.dissection.games] == [
        {"0": (0,), "1": (1,), "2 and later": (Later(2),)},
    ]
    assert parts.dissection.prefixes == {0: "steps.0", 1: "steps.0+1", 2: WHOLE}
    late = parts.part("steps.0+2..")
    assert [step for step in range(6) if late.holds("any", step)] == [0, 2, 3, 4, 5]
    assert 7 in Steps((Later(7),))
    assert 6 not in Steps((Later(7),))


def test_every_distorted_condition_is_given_in_all_subsets_of_parts() -> None:
    found = design(attribute=("cameras",), distort={"cameras": ("front", "wrist")}).conditions("push-v3", 0)
    assert [condition.part for condition in found] == [WHOLE, "cameras.front", "cameras.wrist"]
    assert str(found[1]) == "gaussian_blur 3 in cameras.front"
    assert str(UNDISTORTED) == "reference"


def test_a_part_names_cameras_of_any_program(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("name: libero\ndistortions: [jpeg]\ndistort: {cameras: [observation/image, Wrist Cam]}\n")
    part = load(file, Design).part()
    assert part.holds("observation/image", 12)
    assert not part.holds("top", 0)
