"""`merton gate`: what it draws, its verdicts and exit codes, its files, and how it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gate_errors
import pytest
from typer.testing import CliRunner

from merton.cli import gate as command
from merton.cli.main import app
from merton.config import load, loads
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.experiment import paired
from merton.experiment.paired import agent_named, drawn_cases, paired_experiment, run_pairs
from merton.experiment.plan import ExperimentSpec
from merton.experiment.run import RunDirectory
from merton.files import resource
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.results.text import printable
from merton.seeding import generator
from merton.statistics.sequential import Conclusion
from merton.study import gate_files
from merton.study.gate import judge, scenes_for, worst
from merton.study.gate_page import scenes_that_differ
from merton.study.values import VALUES

EXPERIMENT = """
name: short
seed: 5
agents:
  - {id: idle, vlm: describe, vla: hold}
tasks: [reach]
distortions: [white_noise, jpeg]
levels: [0, 5]
max_steps: 2
"""
EARLY = (
    "The comparison ended as soon as it was sure, so this mean lies, on average, too far from the limit of {} points; "
    "the interval holds all the same."
)
FILES = (gate_files.PAGE, gate_files.MARKDOWN, gate_files.JUNIT, *gate_files.PICTURES)


class Here:
    """An executor whose work is done at once in this process, so that tests share one cell."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "open_pool", lambda count, on_fault: nullcontext(Here()))


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    file = tmp_path / "short.yaml"
    file.write_text(EXPERIMENT)
    return file


def gate(*arguments: object) -> tuple[int, str]:
    """Exit code and text of the command."""
    result = CliRunner().invoke(app, ["gate", *map(str, arguments)])
    if isinstance(result.exception, InputError):
        return 2, str(result.exception)
    return result.exit_code, result.output


def pair(number: int, won: bool, base_won: bool, task: str = "pick") -> tuple[TrialRecord, TrialRecord]:
    case = TestCase(task, number, "jpeg", 3)
    outcomes = [Outcome.SUCCESS if success else Outcome.FAILURE for success in (won, base_won)]
    ours, theirs = (
        TrialRecord("gate", agent, case, outcome, progress=1.0 if outcome is Outcome.SUCCESS else 0.5)
        for agent, outcome in zip(("candidate", "baseline"), outcomes, strict=True)
    )
    return ours, theirs


def test_a_baseline_that_never_acts_lets_nothing_pass(experiment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate is not better than a model that raises: nothing was compared."""
    pairs = [
        (ours, replace(theirs, outcome=Outcome.INVALID_ACTION, steps=0, error_message="IndexError: 3"))
        for ours, theirs in (pair(number, won=True, base_won=False) for number in range(40))
    ]
    judgement = judge(pairs, "success", VALUES["success"], 0.05, ["pick"])
    assert judgement.whole.verdict is Conclusion.NOT_WORSE
    monkeypatch.setattr(command, "_compared", lambda *_: judgement)
    runs = experiment.parent / "runs"
    code, said = gate("idle", "--against", "servo", "--experiment", experiment, "--runs", runs)
    assert code == 4
    assert "the policy servo gave no action in each of its 40 trials; the first: IndexError: 3" in said
    assert not list(runs.glob(f"*/{gate_files.JUNIT}"))


def test_every_scene_is_drawn_from_the_whole_design_and_none_twice() -> None:
    spec = load(resource("merton_bringup", "config/experiments/gate.yaml"), ExperimentSpec)
    cases = list(islice(drawn_cases(spec), 3000))
    assert cases == list(islice(drawn_cases(spec), 3000))
    assert len({case.scene for case in cases}) == len(cases)
    tasks, levels = Counter(case.task for case in cases), Counter(case.level for case in cases)
    assert set(tasks) == set(spec.tasks)
    assert min(tasks.values()) > 0.75 * len(cases) / len(spec.tasks)
    assert max(abs(levels[level] - 500) for level in range(6)) < 5 * 500**0.5
    assert {case.distortion for case in cases} == {*spec.distortions, "reference"}
    assert all((case.level == 0) == (case.distortion == "reference") for case in cases)
    other = drawn_cases(spec.model_copy(update={"seed": 1}))
    assert not set(cases) & set(islice(other, 3000))


def test_scenes_of_a_split_have_the_task(experiment: Path) -> None:
    from merton.simulation.scene import make_scene

    spec = loads(EXPERIMENT.replace("tasks: [reach]", "tasks: [test-insert]"), ExperimentSpec)
    for case in islice(drawn_cases(spec), 5):
        assert make_scene(case.task, case.seed).task == "test-insert"


def test_an_agent_is_named_by_its_id_its_vla_or_both_models() -> None:
    spec = loads(EXPERIMENT, ExperimentSpec)
    assert agent_named(spec, "idle", "candidate").vla == "hold"
    assert (agent_named(spec, "servo", "a").vlm, agent_named(spec, "servo", "a").vla) == ("describe", "servo")
    assert agent_named(spec, "gaze+glance", "a").vlm == "gaze"
    with pytest.raises(UnknownNameError, match="did you mean 'servo'"):
        agent_named(spec, "serve", "a")
    with pytest.raises(UnknownNameError, match="unknown vlm 'gase'; did you mean 'gaze'"):
        agent_named(spec, "gase+servo", "a")


def test_the_experiment_of_a_comparison_keeps_the_design() -> None:
    spec = loads(
        EXPERIMENT.replace("max_steps: 2", "max_steps: 2\nsensor: d455\nprompt: 'Do {instruction}'"), ExperimentSpec
    )
    own = loads(paired_experiment(spec, "idle", "servo", None), ExperimentSpec)
    assert own.design == spec.design
    assert (own.tasks, own.distortions, own.seed) == (spec.tasks, spec.distortions, 5)
    assert [(agent.id, agent.vla) for agent in own.agents] == [("candidate", "hold"), ("baseline", "servo")]
    assert loads(paired_experiment(spec, "idle", "servo", 8), ExperimentSpec).seed == 8


def test_the_judgement_of_scenes() -> None:
    pairs = [pair(number, number % 4 > 0, True, "pick" if number % 2 else "push") for number in range(80)]
    found = judge(pairs, "success", VALUES["success"], 0.05, ("pick", "push", "pull"))
    assert found.whole.difference == pytest.approx(-0.25)
    assert found.whole.verdict is Conclusion.WORSE
    assert found.means == (0.75, 1.0)
    assert {part.name: part.verdict for part in found.tasks} == {
        "pick": Conclusion.UNRESOLVED,  # 40 scenes without a difference
        "pull": Conclusion.UNRESOLVED,
        "push": Conclusion.WORSE,
    }
    assert [(name, one.scenes) for name, one in found.types] == [("jpeg", 80)]
    lost = worst(pairs, VALUES["success"])
    assert lost is not None
    assert lost[0].case.seed == 0
    assert worst(pairs[1:4], VALUES["success"]) is None


def test_a_forecast_says_when_scenes_like_these_are_enough() -> None:
    few = judge([pair(number, True, True) for number in range(30)], "success", VALUES["success"], 0.05, ("pick",))
    enough = scenes_for(few)
    assert enough is not None
    many = judge([pair(number, True, True) for number in range(enough)], "success", VALUES["success"], 0.05, ("pick",))
    assert many.whole.verdict is Conclusion.NOT_WORSE
    on_the_limit = [pair(number, number > 0, True) for number in range(20)]
    assert scenes_for(judge(on_the_limit, "success", VALUES["success"], 0.05, ("pick",))) is None


def test_a_mean_at_an_early_stop_is_said_to_be_too_far_from_the_limit() -> None:
    """At either verdict; a comparison that its budget ended has no such mean."""
    for won, verdict in ((True, Conclusion.NOT_WORSE), (False, Conclusion.WORSE)):
        sure = judge([pair(number, won, not won) for number in range(99)], "success", VALUES["success"], 0.0, ("pick",))
        assert sure.whole.verdict is verdict
        assert EARLY.format("0.0") in gate_files.summary(sure, "new", "old")
    open_end = judge([pair(number, True, True) for number in range(9)], "success", VALUES["success"], 0.05, ("pick",))
    assert not any("ended as soon" in line for line in gate_files.summary(open_end, "new", "old"))


@pytest.mark.parametrize(("share", "cells"), [(None, ("10", "5")), (0.5, ("50 %", "10"))])
def test_the_power_on_the_page_is_that_of_the_script(share: float | None, cells: tuple[str, ...]) -> None:
    """Of docs/reference/gate_errors.md: a row of each table, recomputed."""
    page = (Path(__file__).parents[3] / "docs/reference/gate_errors.md").read_text(encoding="utf-8").splitlines()
    found, names = gate_errors.documented(), ("gate errors", 0.1, *(() if share is None else (share,)))
    studies = [gate_errors.study(found, 0.1, 1400, generator(*names, number), share) for number in range(200)]
    row = " | ".join((*cells, *gate_errors.cells(studies, 0.05, share is not None)))
    assert f"| {row} |" in page


def test_the_files_name_what_was_found(tmp_path: Path) -> None:
    pairs = [pair(number, number % 4 > 0, True, "pick" if number % 2 else "push") for number in range(80)]
    found = judge(pairs, "success", VALUES["success"], 0.05, ("pick", "push"))
    gate_files.write(tmp_path, found, "new|policy", "old")
    text = (tmp_path / "gate.md").read_text()
    assert "Failed: new\\|policy is worse than old by more than 5 points." in text
    assert "75.0 %" in text
    assert "Worse in push: −50.0 points" in text
    assert EARLY.format("−5.0") in text
    assert EARLY.format("−5.0") in (tmp_path / "gate.xml").read_text()
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()
    assert dict(suite.attrib)["tests"] == "3"
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {"verdict": ["failure"], "pick": ["skipped"], "push": ["failure"]}
    for name in gate_files.PICTURES:
        ElementTree.parse(tmp_path / name)
    page = (tmp_path / gate_files.PAGE).read_text()
    assert '<h1 class="bad">Failed: new|policy is worse than old by more than 5 points.</h1>' in page
    assert "differ in 20 of 80 scenes" in page
    assert page.count('<td class="left">failure</td><td class="left">success</td><td>−100.0</td>') == 20


def test_agents_that_do_equally_well_have_no_scene_that_differs(tmp_path: Path) -> None:
    """And a swap of the two turns the sign of every difference."""
    equal = judge(
        [pair(number, True, True, "pick") for number in range(4)], "success", VALUES["success"], 0.05, ("pick",)
    )
    gate_files.write(tmp_path, equal, "new", "old")
    assert "did equally well in each of the 4 scenes" in (tmp_path / gate_files.PAGE).read_text()
    pairs = [pair(number, number % 3 > 0, number % 2 > 0, "pick") for number in range(12)]
    gains, losses = (
        sorted(gain for _, gain in scenes_that_differ(judge(order, "success", VALUES["success"], 0.05, ("pick",))))
        for order in (pairs, [(other, own) for own, other in pairs])
    )
    assert gains == sorted(-loss for loss in losses) != []


@pytest.mark.usefixtures("renders")
@pytest.mark.usefixtures("here")
def test_a_comparison_ends_when_it_is_sure_and_goes_on_where_it_stopped(tmp_path: Path, experiment: Path) -> None:
    """`hold` does nothing, so the oracle is better in every scene; a run in two parts is the run in one."""
    common = ("--experiment", experiment, "--runs", tmp_path / "runs", "--workers", 1)
    code, text = gate("idle", "--against", "oracle", *common, "--name", "parts", "--scenes", 3)
    assert code == command.NOT_RESOLVED
    assert "Not resolved: whether idle is worse than oracle" in text
    assert "--resume" in text
    code, text = gate("idle", "--against", "oracle", *common, "--name", "parts", "--resume")
    assert code == command.WORSE
    assert "Failed: idle is worse than oracle by more than 5 points." in text
    code, _ = gate("idle", "--against", "oracle", *common, "--name", "whole")
    assert code == command.WORSE
    parts, whole = tmp_path / "runs" / "parts", tmp_path / "runs" / "whole"
    for name in FILES:
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name
    assert {file.name for file in (parts / "trials").iterdir()} == {file.name for file in (whole / "trials").iterdir()}
    with ResultStore(whole / "results.sqlite", read_only=True) as store:
        records = store.records()
    assert len(records) == len(list((whole / "trials").iterdir()))
    assert b"data:image/jpeg" in (whole / "worst.svg").read_bytes()
    code, text = gate("oracle", "--against", "idle", *common, "--name", "better", "--delta", 50)
    assert code == 0
    assert "Passed: oracle is not worse than idle" in text


@pytest.mark.usefixtures("here", "renders")
def test_scenes_come_in_the_order_of_drawing_and_leave_no_files_of_others(tmp_path: Path, experiment: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(paired_experiment(load(experiment, ExperimentSpec), "idle", "idle", None))
    run = RunDirectory.create(tmp_path / "runs", file, "two")
    with closing(run_pairs(run, {}, 2, pytest.fail)) as two:
        found = list(islice(two, 2))
        assert len(list((run.path / "trials").iterdir())) > 4
    assert [one[0].case for one in found] == list(islice(drawn_cases(run.spec), 2))
    assert all((one[0].agent, one[1].agent) == ("candidate", "baseline") for one in found)
    saved = {folder.name for folder in (run.path / "trials").iterdir()}
    assert saved == {record.id for one in found for record in one}


def test_a_fault_of_the_infrastructure_has_a_code_of_its_own(
    tmp_path: Path, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def broken(count: int, on_fault: object) -> Iterator[Any]:
        raise InfrastructureError("no camera")
        yield

    monkeypatch.setattr(paired, "open_pool", broken)
    code, text = gate("idle", "--against", "oracle", "--experiment", experiment, "--runs", tmp_path, "--name", "x")
    assert code == command.NOT_COMPLETED
    assert "no camera" in text
    assert "--resume" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("hold", "--against", "nothing"), "nothing"),
        (("hold", "--against", "servo", "--budget", "10"), "--budget is a time such as 90s, 10m or 1h"),
        (("hold", "--against", "servo", "--budget", "0m"), "--budget is a time"),
        (
            ("hold", "--against", "servo", "--metric", "speed"),
            "unknown metric 'speed'; choose one of: progress, success",
        ),
        (("hold", "--against", "servo", "--resume"), "leave --resume out"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    code, text = gate(*arguments, "--runs", tmp_path)
    assert code == 2
    assert message in text
    assert printable(text, len(text)) == text


def test_a_run_of_other_agents_is_not_gone_on_with(tmp_path: Path, experiment: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(paired_experiment(load(experiment, ExperimentSpec), "idle", "servo", None))
    RunDirectory.create(tmp_path, file, "mine")
    common = ("--experiment", experiment, "--runs", tmp_path, "--resume")
    code, text = gate("servo", "--against", "idle", *common, "--name", "mine")
    assert code == 2
    assert "is not of servo against idle" in text
