"""Where an agent loses: shares add up and belong where the agent is sensitive; a killed attribution goes on."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Collection, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted import CAMERAS, STEPS, PlantedPorts
from typer.testing import CliRunner

from merton.cli.attribute import RECORD
from merton.cli.attribution_shown import NUMBERS
from merton.cli.main import app
from merton.decision.models.base import POLICIES
from merton.errors import InputError
from merton.experiment.parts import WHOLE, Dissection, chunks, dissection, jobs_left, run_jobs
from merton.experiment.placebo import PLACEBO
from merton.experiment.plan import AgentSpec, DistortedPart, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner
from merton.experiment.subsets import design_name
from merton.results.records import Outcome, TrialRecord
from merton.results.store import ResultStore
from merton.study.attribution import UNSEEN, Attribution, attribute, failure, shapley, tells_unseen
from merton.study.rerun_sample import Pair, Rerun, pairs_of, rerun_weights


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
    monkeypatch.setattr(ExperimentSpec, "vla_entry", lambda *_: entry)


def planted(
    sees: Collection[tuple[str, int]], scenes: int = 2, pixels: Collection[int] = (0, 1)
) -> tuple[Dissection, list[Rerun]]:
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
        found = {report.record.experiment: report.record for report in reports}
        trials.append(Rerun(Pair(reference, found[WHOLE]), found))
    return parts, trials


def shares(parts: Dissection, trials: list[Rerun], value: str) -> dict[str, dict[str, float]]:
    """Axis to the share of each part."""
    pairs = [trial.pair for trial in trials]
    found: list[Attribution] = [
        item
        for game in parts.games
        for item in attribute("a", game.axis, list(game.parts), game.designs, pairs, trials)
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
        regions = shares(*planted({("top", 1)}, pixels=[pixel]), value)["regions"]
        assert regions == {"things": float(pixel == 0), "surroundings": float(pixel == 1)}, region


@pytest.mark.usefixtures("eyes")
def test_a_part_at_which_an_agent_does_not_look_has_no_interval() -> None:
    parts, trials = planted({("top", 2)})
    pairs = [trial.pair for trial in trials]
    cameras, steps = (
        attribute("a", game.axis, list(game.parts), game.designs, pairs, trials, ["rear"])[0].shares
        for game in parts.games[:2]
    )
    assert cameras["wrist"] is cameras["side"] is cameras["rear"] is UNSEEN
    assert (UNSEEN.value, UNSEEN.interval) == (0.0, None)
    assert cameras["top"].interval is not None
    assert [part for part, share in steps.items() if share is not UNSEEN] == ["2"]
    moved = {**trials[0].found, "steps.1": replace(trials[0].found["steps.1"], decision=0.99)}
    trials[0] = replace(trials[0], found=moved)
    steps = attribute("a", "steps", list(parts.games[1].parts), parts.games[1].designs, pairs, trials)[0].shares
    assert (steps["1"].value, steps["1"] is UNSEEN) == (0.0, False), "one other chunk is enough to have looked"
    found = failure("a", parts.prefixes, pairs, trials)
    assert found is not None
    assert [step for step, at in found.at.items() if at.lost is not UNSEEN] == [2]


@pytest.mark.usefixtures("eyes")
def test_where_no_path_is_known_equal_records_do_not_say_that_an_agent_does_not_look() -> None:
    """Trials of another world end alike at its step limit, whatever the robot did."""

    def bare(record: TrialRecord) -> TrialRecord:
        progress = 1.0 if record.success else None
        return replace(record, path_m=None, distance_m=None, angle_rad=None, progress=progress)

    parts, known = planted({("top", 2)})
    trials = [
        Rerun(Pair(bare(one.pair.before), bare(one.pair.after)), {name: bare(each) for name, each in one.found.items()})
        for one in known
    ]
    pairs = [trial.pair for trial in trials]
    cameras, steps = (
        attribute("a", game.axis, list(game.parts), game.designs, pairs, trials)[0].shares for game in parts.games[:2]
    )
    assert [part for part, share in cameras.items() if share.interval is None] == ["wrist", "side"], "by step 0"
    assert {part: share.value for part, share in steps.items()} == {"0": 0.0, "1": 0.0, "2": 1.0, "3": 0.0}
    assert all(share.interval is not None for share in steps.values())
    found = failure("a", parts.prefixes, pairs, trials)
    assert found is not None
    assert all(at.lost.interval is not None for at in found.at.values())


@pytest.mark.usefixtures("eyes")
def test_a_progress_that_counts_stages_does_not_say_that_an_agent_does_not_look() -> None:
    """Two trials often end at one stage; a progress that is measured is never the same in two scenes."""

    def told(progress: Sequence[float]) -> bool:
        _, known = planted({("top", 2)}, scenes=len(progress))
        ends = [
            replace(one.pair.after, path_m=None, progress=value, outcome=Outcome.FAILURE)
            for one, value in zip(known, progress, strict=True)
        ]
        return tells_unseen("steps", [Rerun(Pair(end, end), {}) for end in ends])

    assert not told([0.0, 0.25, 0.25, 0.5, 0.75])
    assert not told([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert not told([0.25, 0.5, 0.75])
    assert told([0.0, 0.31, 0.11, 0.62, 0.93, 0.44])


def test_designs_of_many_long_names_are_named_by_their_places() -> None:
    cameras = [f"a-rather-long-name-of-a-camera-{number}" for number in range(8)]
    assert design_name("cameras", cameras[:1], cameras) == f"cameras.{cameras[0]}"
    assert design_name("cameras", cameras[1:], cameras) == "cameras.1-7"
    assert design_name("steps", range(0, 200, 2), [*range(0, 200, 2), 201]) == "steps.0-99"


@pytest.mark.usefixtures("eyes")
def test_success_is_lost_at_the_step_from_which_clean_images_no_longer_help() -> None:
    parts, trials = planted({("top", 1), ("side", 2)}, scenes=3)
    pairs = [trial.pair for trial in trials]
    found = failure("a", parts.prefixes, pairs, trials)
    assert found is not None
    assert (found.trials, found.scenes, found.others, found.steps) == (3, 3, 0, {STEPS: 3})
    assert {step: (at.saved, at.won.value, at.lost.value) for step, at in found.at.items()} == {
        0: (1.0, 1.0, 0.0),
        1: (1.0, 1.0, 1.0),
        2: (0.0, 0.0, 0.0),
        3: (0.0, 0.0, 0.0),
    }
    assert found.at[1].spoiled is None
    parts, trials = planted(())
    assert failure("a", parts.prefixes, [trial.pair for trial in trials], trials) is None


def test_cognition_is_a_part_where_it_is_causal_and_unseen_cameras_are_none() -> None:
    agents = (
        AgentSpec(id="servo", vla="servo"),
        AgentSpec(id="oracle", vla="oracle"),
        AgentSpec(id="glance", vla="glance"),
    )
    spec = ExperimentSpec(name="x", agents=agents, tasks=("pick",), max_steps=6)
    servo, oracle, glance = (dissection(spec, agent) for agent in agents)
    assert [game.axis for game in servo.games] == ["cameras", "steps", "regions"]
    assert (set(servo.games[0].parts), servo.games[0].unseen) == ({"top", "wrist"}, ("side",))
    assert servo.games[1].parts == {"0": (0,), "1": (1,), "2": (2,), "3 and later": (3, 4, 5)}
    assert servo.designs["cameras.wrist+side"].cameras == ("wrist", "side"), "a camera that it does not use stays"
    assert servo.designs[WHOLE] == spec.distort
    assert (oracle.is_trivial, oracle.looks, servo.looks) == (True, False, True)
    assert [game.axis for game in glance.games] == ["cameras", "steps", "regions"]
    assert (set(glance.games[0].parts), glance.games[0].unseen) == ({"top"}, ("wrist", "side"))
    coupled = spec.model_copy(update={"couple": "vlm -> vla", "distort": DistortedPart(steps=(0, 2))})
    servo, oracle, glance = (dissection(coupled, agent) for agent in agents)
    assert [game.axis for game in servo.games] == ["stages", "cameras", "steps", "regions"]
    assert servo.designs["stages.cognition"].stages == ("cognition",)
    assert servo.games[2].parts == {"0": (0,), "2": (2,)}
    assert servo.designs["regions.things"].regions == ("things",)
    assert (oracle.games[0].axis, set(oracle.games[0].parts)) == ("stages", {"cognition"})
    assert oracle.games[0].unseen == ("decision",), "it answers through the VLM alone"
    with pytest.raises(InputError, match="unknown axis 'lenses'; choose one of: cameras, regions, stages, steps"):
        dissection(spec, agents[0], ["lenses"])
    with pytest.raises(InputError, match="1 to 8 parts, got 9"):
        dissection(spec, agents[0], step_parts=9)


def test_designs_that_are_alike_so_far_share_their_chunks() -> None:
    agent = AgentSpec(id="servo", vla="servo")
    spec = ExperimentSpec(name="x", agents=(agent,), tasks=("pick",), max_steps=6)
    whole, first = spec.distort, DistortedPart(steps=(0,))
    assert chunks(spec, agent, {"all": whole}, 3) == 3
    assert chunks(spec, agent, {"all": whole, "first": first}, 3) == 5, "the first is one"
    assert chunks(spec, agent, {"all": whole, "top": DistortedPart(cameras=("top",))}, 3) == 6


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
    other = tmp_path / "copied"
    shutil.copytree(tmp_path / "one", other)
    (other / NUMBERS).unlink()
    (other / RECORD).unlink()
    run = RunDirectory(other)
    with ResultStore(run.database, read_only=True) as store:
        records = store.records(run.id)
    pairs = pairs_of(records, "servo")
    weights = rerun_weights(pairs, run.spec.seed)
    assert list(weights.values()) == [1.0, 1.0]
    trials = [Trial(run.spec.agents[0], pair.after.case) for pair in pairs]
    made = {"servo": dissection(run.spec, run.spec.agents[0], step_parts=2)}
    with ResultStore(other / RECORD) as store:
        jobs = jobs_left(run, store, made, trials)
        assert [bool(job.designs) for job in jobs] == [True, True, False, False], "the placebo is undistorted, too"
        other_results = [replace(record, progress=0.123) for record in records]
        with pytest.raises(InputError, match=r"other results of servo.* \(progress .*\): run the experiment again"):
            next(run_jobs(AtOnce(), run, store, jobs, other_results))
        assert store.ids(WHOLE) == []
        next(run_jobs(AtOnce(), run, store, jobs, records))  # and then it is killed
        assert store.ids(WHOLE) == store.ids(PLACEBO) == [trials[0].id]
        assert [job.trial for job in jobs_left(run, store, made, trials)] == [job.trial for job in jobs[1:]]
    again = CliRunner().invoke(app, ["attribute", str(other), "--workers", "1", "--step-parts", "2"])
    assert again.stdout.replace("copied", "one") == first.stdout
    assert (other / NUMBERS).read_bytes() == numbers
