"""Where an agent loses: shares add up and belong where the agent is sensitive; a killed attribution goes on."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Collection
from concurrent.futures import Executor, Future
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import CAMERAS, STEPS, PlantedPorts
from typer.testing import CliRunner

from merton.cli.attribute import NUMBERS, RECORD
from merton.cli.main import app
from merton.decision.models.base import POLICIES
from merton.errors import InputError
from merton.experiment import parts as parts_module
from merton.experiment import trial as trial_module
from merton.experiment.parts import WHOLE, Dissection, dissection, lost_trials, run_parts
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.study.attribution import Attribution, Found, attribute, failure, shapley


def subsets(parts: Collection[str]) -> list[frozenset[str]]:
    sizes = range(1, len(parts) + 1)
    return [frozenset(some) for some in chain.from_iterable(combinations(parts, size) for size in sizes)]


def test_shares_add_up_and_a_part_without_effect_has_none() -> None:
    rng = np.random.default_rng(1)
    for n in range(1, 7):
        names = [f"p{number}" for number in range(n)]
        losses = {some: float(rng.normal()) for some in subsets(names)}
        shares = shapley(names, losses)
        assert abs(math.fsum(shares.values()) - losses[frozenset(names)]) < 1e-12
        assert shapley(names[::-1], losses) == pytest.approx(shares, abs=1e-12)
        blind = {some: losses.get(some - {"blind"}, 0.0) for some in subsets([*names, "blind"])}
        with_blind = shapley([*names, "blind"], blind)
        assert with_blind.pop("blind") == pytest.approx(0.0, abs=1e-12)
        assert with_blind == pytest.approx(shares, abs=1e-12), "and changes no other"


def test_shares_of_known_games() -> None:
    one = {frozenset("a"): 1.0, frozenset("b"): 1.0, frozenset("ab"): 1.0}
    assert shapley("ab", one) == {"a": 0.5, "b": 0.5}  # either is enough
    both = {frozenset("a"): 0.0, frozenset("b"): 0.0, frozenset("ab"): 1.0}
    assert shapley("ab", both) == {"a": 0.5, "b": 0.5}  # both are needed
    glove = {some: float("l" in some and len(some) > 1) for some in subsets("lrs")}  # Shapley and Shubik 1969
    assert shapley("lrs", glove) == pytest.approx({"l": 2 / 3, "r": 1 / 6, "s": 1 / 6})


@pytest.fixture
def eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that looks through all cameras."""
    entry = POLICIES["servo"].model_copy(update={"cameras": CAMERAS, "needs_depth": False})
    for module in (trial_module, parts_module):
        monkeypatch.setattr(module, "POLICIES", {"servo": entry})


def planted(
    sees: Collection[tuple[str, int]], scenes: int = 2, pixels: Collection[int] = (0, 1)
) -> tuple[Dissection, list[tuple[TrialRecord, Found]]]:
    """All designs of an agent that fails if it is shown a distorted image at one of these (camera, step)."""
    spec = ExperimentSpec(
        name="planted",
        agents=(AgentSpec(id="a", vla="servo"),),
        tasks=("reach",),
        distortions=("jpeg",),
        levels=(5,),
        scenes=scenes,
        max_steps=STEPS,
    )
    runner, parts = Runner(spec, "planted", PlantedPorts(sees, pixels)), dissection(spec, spec.agents[0])
    trials = []
    for case in spec.cases():
        if case.is_reference:
            reference = runner.run(Trial(spec.agents[0], case)).record
            continue
        specs = {name: spec.model_copy(update={"distort": part}) for name, part in parts.designs.items()}
        reports = runner.run_forked(Trial(spec.agents[0], case), specs)
        trials.append((reference, {report.record.experiment: report.record for report in reports}))
    return parts, trials


def shares(parts: Dissection, trials: list[tuple[TrialRecord, Found]], value: str) -> dict[str, dict[str, float]]:
    """Axis to the share of each part."""
    found: list[Attribution] = [
        item for game in parts.games for item in attribute("a", game.axis, list(game.parts), game.designs, trials)
    ]
    for item in found:
        assert abs(math.fsum(share.value for share in item.shares.values()) - item.loss.value) < 1e-9
        assert item.loss.value == 1.0
    return {
        item.axis: {part: mean.value for part, mean in item.shares.items()} for item in found if item.value == value
    }


@pytest.mark.usefixtures("eyes")
@pytest.mark.parametrize("value", ["success", "progress"])
def test_all_of_the_loss_goes_where_a_planted_agent_is_sensitive(value: str) -> None:
    parts, trials = planted({(camera, 2) for camera in CAMERAS})
    found = shares(parts, trials, value)
    assert found["steps"] == {"0": 0.0, "1": 0.0, "2": 1.0, "3": 0.0}
    assert found["cameras"] == pytest.approx(dict.fromkeys(CAMERAS, 1 / 3)), "each of them is enough"
    assert "stages" not in found, "without couple cognition has no effect"
    parts, trials = planted({("top", 1), ("top", 3)})
    found = shares(parts, trials, value)
    assert found["cameras"] == {"wrist": 0.0, "top": 1.0, "side": 0.0}
    assert found["steps"] == {"0": 0.0, "1": 0.5, "2": 0.0, "3": 0.5}
    parts, trials = planted({(camera, step) for camera in ("wrist", "side") for step in range(STEPS)})
    found = shares(parts, trials, value)
    assert found["cameras"] == {"wrist": 0.5, "top": 0.0, "side": 0.5}, "blind in the top camera"
    assert found["regions"] == {"things": 0.5, "surroundings": 0.5}, "either is enough"
    for pixel, region in ((0, "things"), (1, "surroundings")):
        found = shares(*planted({("top", 1)}, pixels=[pixel]), value)["regions"]
        assert found == {"things": float(pixel == 0), "surroundings": float(pixel == 1)}, region


@pytest.mark.usefixtures("eyes")
def test_shares_are_means_over_all_distorted_trials() -> None:
    parts, trials = planted({("top", 2)})
    game = parts.games[0]
    alone, among = (
        attribute("a", game.axis, list(game.parts), game.designs, trials, scenes)[0]
        for scenes in ((), ["reach.7"] * 3 + ["reach.8"] * 3)
    )
    assert (alone.loss.value, alone.lost, alone.trials, alone.scenes) == (1.0, 2, 2, 2)
    assert (among.loss.value, among.lost, among.trials, among.scenes) == (0.25, 2, 8, 4)
    assert among.shares["top"] == among.loss
    assert among.shares["wrist"].value == 0.0
    assert among.shares["wrist"].interval[0] < 0.0 < among.shares["wrist"].interval[1]


@pytest.mark.usefixtures("eyes")
def test_a_trial_is_lost_at_the_last_step_at_which_clean_images_still_help() -> None:
    parts, trials = planted({("top", 1), ("side", 2)}, scenes=3)
    found = failure("a", WHOLE, parts.prefixes, trials)
    assert found is not None
    assert (found.trials, found.scenes, found.lost_at, found.steps) == (3, 3, {1: 3}, {STEPS: 3})
    assert {step: mean.value for step, mean in found.saved.items()} == {1: 1.0, 2: 0.0, 3: 0.0, 4: 0.0}
    parts, trials = planted(())
    assert failure("a", WHOLE, parts.prefixes, trials) is None


def test_cognition_is_a_part_where_it_is_causal_and_unseen_cameras_are_none() -> None:
    agents = (
        AgentSpec(id="servo", vla="servo"),
        AgentSpec(id="oracle", vla="oracle"),
        AgentSpec(id="glance", vla="glance"),
    )
    spec = ExperimentSpec(name="x", agents=agents, tasks=("pick",), max_steps=6)
    servo, oracle, glance = (dissection(spec, agent) for agent in agents)
    assert [game.axis for game in servo.games] == ["cameras", "steps", "regions"]
    assert set(servo.games[0].parts) == {"top", "wrist"}
    assert servo.games[1].parts == {"0": (0,), "1": (1,), "2": (2,), "3 and later": (3, 4, 5)}
    assert servo.designs["cameras.wrist+side"].cameras == ("wrist", "side"), "a camera that it does not use stays"
    assert servo.designs[WHOLE] == spec.distort
    assert oracle.is_trivial
    assert [game.axis for game in glance.games] == ["steps", "regions"]
    coupled = spec.model_copy(update={"couple": "vlm -> vla", "distort": DistortedPart(steps=(0, 2))})
    servo, oracle, glance = (dissection(coupled, agent) for agent in agents)
    assert [game.axis for game in servo.games] == ["stages", "cameras", "steps", "regions"]
    assert servo.designs["stages.cognition"].stages == ("cognition",)
    assert servo.games[2].parts == {"0": (0,), "2": (2,)}
    assert servo.designs["regions.things"].regions == ("things",)
    assert not oracle.is_trivial
    with pytest.raises(InputError, match="unknown axis 'lenses'; choose one of: cameras, regions, stages, steps"):
        dissection(spec, agents[0], ["lenses"])
    with pytest.raises(InputError, match="1 to 8 parts, got 9"):
        dissection(spec, agents[0], step_parts=9)


def test_only_trials_that_lose_are_asked_about() -> None:
    spec = ExperimentSpec(
        name="x",
        agents=(AgentSpec(id="a", vla="servo"),),
        tasks=("pick",),
        distortions=("jpeg",),
        scenes=5,
        levels=(5,),
    )

    def records(scene: int, outcomes: tuple[Outcome, Outcome], progress: tuple[float, float]) -> list[TrialRecord]:
        cases = TestCase("pick", scene, "reference", 0), TestCase("pick", scene, "jpeg", 5)
        return [
            TrialRecord("x", "a", *made[:2], progress=made[2]) for made in zip(cases, outcomes, progress, strict=True)
        ]

    won, lost, fault = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE
    found = [
        *records(0, (won, lost), (1.0, 0.9)),
        *records(1, (won, won), (1.0, 1.0)),
        *records(2, (lost, lost), (0.5, 0.4)),
        *records(3, (lost, lost), (0.5, 0.6)),
        *records(4, (won, fault), (1.0, None)),  # type: ignore[arg-type]
    ]
    lost, unharmed = lost_trials(spec, found)
    assert [trial.case.seed for trial in lost] == [0, 2]
    assert [trial.case.seed for trial in unharmed] == [1, 3], "one that gains loses nothing"
    assert lost_trials(spec, found, ["b"]) == ([], [])


EXPERIMENT = """
name: where
seed: 3
agents: [{id: servo, vla: servo}]
tasks: [reach]
distortions: [max_darken]
levels: [5]
scenes: 2
max_steps: 3
couple: vlm -> vla
prompt: "Give the robot its instruction in one sentence, for this task: {instruction}."
"""


class AtOnce(Executor):
    """Carries everything out in this process, which is there already."""

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Future:
        done: Future = Future()
        done.set_result(work(*arguments, **named))
        return done


@pytest.mark.usefixtures("renders")
def test_a_killed_attribution_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "where.yaml"
    file.write_text(EXPERIMENT)
    asked = ["attribute", str(file), "--runs", str(tmp_path), "--name", "one", "--workers", "1", "--step-parts", "2"]
    first = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert "all cameras" in first.stdout
    numbers = (tmp_path / "one" / NUMBERS).read_bytes()
    shares = {(item["axis"], item["value"]): item["shares"] for item in json.loads(numbers)["attributions"]}
    assert shares["stages", "success"]["cognition"]["value"] > 0.5, "in the dark the VLM sees no cube"
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "one", other)
    (other / NUMBERS).unlink()
    (other / RECORD).unlink()
    run = RunDirectory(other)
    with ResultStore(run.database, read_only=True) as store:
        records = store.records(run.id)
    lost, unharmed = lost_trials(run.spec, records)
    assert (len(lost), len(unharmed)) == (2, 0)
    made = {"servo": dissection(run.spec, run.spec.agents[0], step_parts=2)}
    with ResultStore(other / RECORD) as store:
        other_results = [replace(record, progress=0.123) for record in records]
        with pytest.raises(InputError, match=r"other results of servo.* \(progress .*\): run the experiment again"):
            next(run_parts(AtOnce(), run, store, made, lost[:1], other_results))
        assert store.ids(WHOLE) == []
        next(run_parts(AtOnce(), run, store, made, lost, records))  # and then it is killed
        assert store.ids(WHOLE) == [lost[0].id]
    again = CliRunner().invoke(app, ["attribute", str(other), "--workers", "1", "--step-parts", "2"])
    assert again.stdout.replace("other", "one") == first.stdout
    assert (other / NUMBERS).read_bytes() == numbers
