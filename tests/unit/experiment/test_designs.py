"""Designs of an experiment: levels, prompt, the distorted part, coupling of the stages, the stop rule."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from planted import CAMERAS, STEPS, PlantedPorts
from scipy.stats import chisquare
from typer.testing import CliRunner

from merton.cli.main import app
from merton.cognition.models.base import NEUTRAL_PROMPT, Answer, question_for
from merton.cognition.models.describe import Describe
from merton.config import load, loads
from merton.decision.models.base import POLICIES
from merton.errors import ErrorCode, InputError
from merton.experiment.dry_run import outline
from merton.experiment.local import LocalPorts
from merton.experiment.plan import DistortedPart, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner
from merton.experiment.trial import TrialReport, run_trial
from merton.files import resource
from merton.results.records import Outcome, TestCase
from merton.simulation.scene import make_scene
from merton.world import tasks

MINIMAL = "name: x\nagents: [{id: a, vla: servo}]\ntasks: [reach]\n"
LEADING = "In about ten words, say where the object is and how to {instruction}."
INSTRUCT = "Look at the image, then give the robot its instruction in one sentence, for this task: {instruction}."


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    ports = LocalPorts()
    yield ports
    ports.close()


def design(text: str) -> ExperimentSpec:
    return loads(MINIMAL + text, ExperimentSpec, "experiment")


def shipped(name: str) -> ExperimentSpec:
    return load(resource("merton_bringup", f"config/experiments/{name}.yaml"), ExperimentSpec)


@pytest.mark.parametrize(("name", "references"), [("execution_study", 10), ("execution_study_full", 14)])
def test_an_execution_study_has_five_learned_agents_and_one_level_for_each_scene_and_type(
    name: str, references: int
) -> None:
    spec = shipped(name)
    trials = spec.trials()
    assert Counter(trial.case.is_reference for trial in trials) == {False: 150 * references, True: 5 * references}
    verbs = {task.partition("-")[2] for task in spec.tasks}
    for agent in spec.agents:
        assert verbs <= set(POLICIES[agent.vla].settings["verbs"]), f"{agent.id} claims all of them"
    levels: dict[tuple, set[int]] = {}
    for trial in trials:
        if not trial.case.is_reference:
            levels.setdefault((trial.case.task, trial.case.seed, trial.case.distortion), set()).add(trial.case.level)
    assert len(levels) == 30 * references
    assert all(len(level) == 1 for level in levels.values()), "the same for every agent"
    histogram = Counter(level for (level,) in levels.values())
    assert sorted(histogram) == [1, 2, 3, 4, 5]
    assert chisquare(list(histogram.values())).pvalue > 0.01
    assert trials == spec.trials()


def test_each_of_the_ten_references_of_the_execution_study_is_a_scene_of_its_own() -> None:
    """1,500 distorted trials and 50 references, as in section 5.4 of the paper."""
    spec = shipped("execution_study")
    references = [case for case in spec.cases() if case.is_reference]
    assert (len(spec.agents), len(references), len({case.scene for case in references})) == (5, 10, 10)
    assert outline(spec)[0] == "execution-study: 1550 trials (50 undistorted, 1500 distorted)"


@pytest.mark.parametrize("name", ["quickstart", "ten_verbs", "execution_study", "execution_study_full"])
def test_a_study_looks_through_cameras_with_errors(name: str) -> None:
    assert shipped(name).sensor == "d455"


def test_a_drawn_level_follows_from_seed_task_scene_and_type() -> None:
    spec = design("seed: 7\nlevels: one\ndistortions: [jpeg]\nscenes: 2\n")
    for case in spec.cases():
        if not case.is_reference:
            text = "\x1f".join(("7", "level", "reach", str(case.seed), "jpeg"))
            assert case.level == 1 + (int(hashlib.sha256(text.encode()).hexdigest()[:16], 16) >> 1) % 5
    assert {case.id for case in spec.cases()} < {
        case.id for case in design("seed: 7\nlevels: [1, 2, 3, 4, 5]\ndistortions: [jpeg]\nscenes: 2\n").cases()
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("levels: two\n", r"line 4: levels: must be 'one', 'staircase' or a list .* such as \[0, 3\], got 'two'"),
        (
            "distort: {cameras: [x]}\n",
            r"line 4: distort\.cameras, entry 1: unknown camera 'x'; choose one of: side, top, wrist",
        ),
        ("distort: {stages: [hands]}\n", r"line 4: distort\.stages, entry 1: .*'cognition' or 'decision'"),
        ("distort: {steps: [8]}\n", r"distort\.steps: there is no step 8: steps are 0 to 7"),
        ("distort: {stages: [cognition], cameras: [wrist]}\n", r"nothing would be distorted"),
        ("distort: {stages: [cognition], steps: [1]}\n", r"nothing would be distorted"),
        ("prompt: Hello\n", r"line 4: prompt: must contain \{instruction\}"),
        ("couple: vla\n", r"line 4: couple: .*'vlm -> vla'"),
        ("stop_rule: never\n", r"line 4: stop_rule: .*'gate' or 'contact'"),
    ],
)
def test_a_wrong_design_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        design(text)


def test_run_json_has_the_whole_design_and_a_changed_default_ends_a_resumed_run(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(MINIMAL + "levels: one\ndistort: {steps: [2]}\n")
    run = RunDirectory.create(tmp_path / "runs", file, "x")
    written = json.loads((run.path / "run.json").read_text())["design"]
    assert written == {
        "levels": "one",
        "scenes": 1,
        "reference_scenes": 0,
        "max_steps": 8,
        "vlm_camera": "top",
        "prompt": "Solve this task in about ten words: {instruction}.",
        "distort": {
            "cameras": list(CAMERAS),
            "stages": ["cognition", "decision"],
            "steps": [2],
            "regions": ["things", "surroundings"],
        },
        "couple": None,
        "stop_rule": "gate",
        "sensor": "ideal",
        "latency_s": 0.0,
        "min_image_quality": 0.0,
        "quality_metric": "merton-nr",
    }
    run.check_experiment(file)
    run.amend(design={**written, "prompt": "Say {instruction}."})
    with pytest.raises(InputError, match="begun by a Merton with another default of prompt"):
        run.check_experiment(file)
    run.amend(design=written, reference_width_px=512)
    with pytest.raises(InputError, match="levels of distortion that hold at 512 pixels, and today's hold at 640"):
        run.check_experiment(file)
    run.amend(reference_width_px=640, arm="UR10e")
    with pytest.raises(
        InputError, match=r"was begun with the arm UR10e, and config/cell\.yaml has UR5: start a new run"
    ):
        run.check_experiment(file)
    run.amend(arm="UR5", calibration="0123456789ab")
    with pytest.raises(InputError, match=r"with the arm UR5 with the calibration 0123456789ab, and .* has UR5: start"):
        run.check_experiment(file)


def test_a_dry_run_counts_trials_and_levels(tmp_path: Path) -> None:
    lines = outline(shipped("ten_verbs"))
    assert lines[0] == "ten-verbs: 1120 trials (160 undistorted, 960 distorted)"
    assert [line.split(":")[0] for line in lines[2:7]] == [f"level {level}" for level in range(1, 6)]
    assert sum(int(line.split()[2]) for line in lines[2:7]) == 960
    assert lines[7].startswith("about 7 min")
    file = tmp_path / "x.yaml"
    dry = ["run", str(file), "--dry-run", "--runs", str(tmp_path / "runs")]
    for field in ("stop_rule: contact", "sensor: d455"):
        file.write_text(MINIMAL + field + "\n")
        assert "1 trial (undistorted)" in CliRunner().invoke(app, dry).stdout
        refused = CliRunner().invoke(app, [*dry, "--graph", "lab"])
        assert isinstance(refused.exception, InputError)
        assert field in str(refused.exception)
        assert "only sim is for it" in str(refused.exception)
    assert not (tmp_path / "runs").exists()


def planted(monkeypatch: pytest.MonkeyPatch, sees: Collection[tuple[str, int]], **part: Any) -> TrialReport:
    """The distorted trial of a planted agent that looks through all cameras."""
    entry = POLICIES["servo"].model_copy(update={"cameras": CAMERAS, "needs_depth": False})
    monkeypatch.setattr(ExperimentSpec, "vla_entry", lambda *_: entry)
    spec = design(f"distortions: [jpeg]\nlevels: [5]\nmax_steps: {STEPS}\n").model_copy(
        update={"distort": DistortedPart(**part)}
    )
    return run_trial(PlantedPorts(sees), spec, "id", Trial(spec.agents[0], spec.cases()[1]), None, [])


@pytest.mark.parametrize("sees", [{("top", 2)}, {("wrist", step) for step in range(STEPS)}, {(c, 2) for c in CAMERAS}])
def test_a_planted_agent_fails_exactly_where_it_is_sensitive(
    monkeypatch: pytest.MonkeyPatch, sees: set[tuple[str, int]]
) -> None:
    """Blind in all cameras but one, or sensitive at step 2 only: the loss goes where it belongs, and nowhere else."""
    for camera, step in itertools.product(CAMERAS, range(STEPS)):
        report = planted(monkeypatch, sees, cameras=(camera,), steps=(step,))
        assert (report.record.outcome is Outcome.FAILURE) == ((camera, step) in sees), (camera, step)
    for camera in CAMERAS:
        report = planted(monkeypatch, sees, cameras=(camera,))
        assert (report.record.outcome is Outcome.FAILURE) == any(name == camera for name, _ in sees)
    assert planted(monkeypatch, sees, stages=("cognition",)).record.outcome is Outcome.SUCCESS
    assert planted(monkeypatch, sees, stages=("decision",)).record.outcome is Outcome.FAILURE


def test_only_the_distorted_part_is_shown_and_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    def white(report: TrialReport) -> set[tuple[str, int]]:
        return {(picture.camera, picture.step) for picture in report.pictures if picture.distorted.any()}

    def answers(report: TrialReport) -> tuple[str, str]:
        return report.evidence.answers

    everywhere = set(itertools.product(CAMERAS, range(STEPS)))
    whole = planted(monkeypatch, ())
    assert (white(whole), answers(whole)) == (everywhere, ("black", "white"))
    one = planted(monkeypatch, (), cameras=("wrist",), steps=(1, 3))
    assert (white(one), answers(one)) == ({("wrist", 1), ("wrist", 3)}, ("black", "black"))
    asked = planted(monkeypatch, (), stages=("cognition",))
    assert (white(asked), answers(asked)) == ({("top", 0)}, ("black", "white"))
    acts = planted(monkeypatch, (), stages=("decision",))
    assert (white(acts), answers(acts)) == (everywhere, ("black", "black"))


def test_the_side_of_an_image_is_the_reference_outside_of_the_part() -> None:
    part = DistortedPart(cameras=("top",), stages=("decision",), steps=(1,))
    for stage, camera, step in itertools.product(("cognition", "decision"), CAMERAS, range(3)):
        inside = (stage, camera, step) == ("decision", "top", 1)
        assert part.side("distorted", stage, camera, step) == ("distorted" if inside else "reference")
        assert part.side("reference", stage, camera, step) == "reference"


@pytest.mark.parametrize("prompt", [NEUTRAL_PROMPT, "First look. {instruction}! Answer briefly."])
def test_the_prompt_is_the_question_with_the_task(prompt: str) -> None:
    spec = design(f"max_steps: 1\nprompt: {json.dumps(prompt)}\n")
    world = PlantedPorts(())
    report = run_trial(world, spec, "id", Trial(spec.agents[0], spec.cases()[0]), None, [])
    assert report.question == prompt.replace("{instruction}", "reach above the red cube")
    assert {question for question, *_ in world.asked} == {report.question}


@pytest.mark.parametrize("task", list(tasks.TASKS))
def test_the_task_is_found_in_any_question(task: str) -> None:
    command = make_scene(task, 1).command
    for prompt in (NEUTRAL_PROMPT, LEADING, INSTRUCT, "{instruction}"):
        assert tasks.find(question_for(command.instruction, prompt)) == command


@pytest.mark.usefixtures("renders")
def test_the_rule_based_vlm_answers_a_neutral_question_and_writes_an_instruction(ports: LocalPorts) -> None:
    for task in ("reach", "place", "move"):
        instruction = ports.reset(task, 1)
        picture = ports.view(("top",), ()).reference["top"].color
        leading, neutral, written = (
            Describe().answer([picture], question_for(instruction, prompt)).text
            for prompt in (LEADING, NEUTRAL_PROMPT, INSTRUCT)
        )
        assert leading == neutral
        assert tasks.parse(written) == tasks.parse(instruction)


def test_a_text_without_a_task_has_none_and_of_two_the_last_counts() -> None:
    assert tasks.find("Solve this task in about ten words: make me a sandwich.") is None
    assert tasks.find("repick up the red cubes") is None
    found = tasks.find("Like 'pick up the red cube'. Task: Push the green cylinder\n to the left.")
    assert found == tasks.Command("push", "green cylinder", "left")


def coupled(monkeypatch: pytest.MonkeyPatch, ports: LocalPorts, level: int, answers: dict[str, str]) -> TrialReport:
    """The trial of the servo with the instructions of a VLM that answers so to each side."""
    monkeypatch.setattr(ports, "answer", lambda model, image, question, side: Answer(answers[side]))
    spec = design("distortions: [jpeg]\nlevels: [1]\ncouple: vlm -> vla\nmax_steps: 6\n")
    return run_trial(ports, spec, "id", Trial(spec.agents[0], spec.cases()[1 if level else 0]), None, [])


def test_the_answer_becomes_the_instruction(monkeypatch: pytest.MonkeyPatch, ports: LocalPorts) -> None:
    task = ports.reset("reach", 0)
    right = task[0].upper() + task[1:] + "."
    other = "Reach above the yellow cube." if "yellow" not in task else "Reach above the blue cube."
    assert coupled(monkeypatch, ports, 0, {"reference": right, "distorted": right}).record.outcome is Outcome.SUCCESS
    misled = coupled(monkeypatch, ports, 1, {"reference": right, "distorted": other})
    assert misled.record.outcome is not Outcome.SUCCESS
    assert misled.instruction == task
    unread = coupled(monkeypatch, ports, 1, {"reference": right, "distorted": "No cube visible."})
    assert unread.record.outcome is Outcome.INVALID_ACTION
    assert unread.record.error_code == ErrorCode.INVALID_ACTION
    assert "cannot understand the instruction 'No cube visible.'" in unread.record.error_message


def test_an_image_that_the_vlm_misreads_stops_a_coupled_arm(ports: LocalPorts) -> None:
    spec = shipped("coupled").model_copy(update={"levels": (5,), "scenes": 1})
    servo = spec.agents[1]
    runner = Runner(spec, "id", ports)
    reference = runner.run(Trial(servo, TestCase("pick", 0, "reference", 0)))
    assert reference.record.outcome is Outcome.SUCCESS
    blind = runner.run(Trial(servo, TestCase("pick", 0, "max_darken", 5)))
    assert (blind.record.outcome, blind.record.execution) == (Outcome.INVALID_ACTION, 0.0)
    assert blind.evidence.answers[1] == "No green cylinder visible."


def test_with_contact_a_plunge_goes_on_until_it_touches(ports: LocalPorts) -> None:
    heights_m: dict[str, float] = {}
    for rule, says in (("gate", "would bring"), ("contact", "touched table with")):
        spec = loads(f"{MINIMAL}stop_rule: {rule}\n".replace("servo", "plunge"), ExperimentSpec, "x")
        record = run_trial(ports, spec, "id", Trial(spec.agents[0], spec.cases()[0]), None, []).record
        assert (record.outcome, record.execution) == (Outcome.EMERGENCY_STOP, 0.0)
        assert says in record.error_message
        heights_m[rule] = float(ports.view((), ()).base_from_tcp[2, 3])
    assert heights_m["contact"] < heights_m["gate"] - 0.02


def test_the_stop_rule_leaves_a_motion_without_a_collision_alone(ports: LocalPorts) -> None:
    def details(rule: str) -> dict[str, Any]:
        spec = loads(f"{MINIMAL}max_steps: 6\nstop_rule: {rule}\n".replace("reach", "pick"), ExperimentSpec, "x")
        report = run_trial(ports, spec, "id", Trial(spec.agents[0], spec.cases()[0]), None, [])
        return {**report.details, "wall_s": 0}

    assert details("gate") == details("contact")
