"""A failure of a model is never a score: in a trial, its files, a run's end, the board and the report.

The values follow from the rule alone: without two answers there is nothing to compare, so cognition is None; two
texts without a word are no agreement, and one beside a text with words shares none with it (0): see
docs/reference/scores.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import typer

from merton.cli import main
from merton.cli import runs as commands
from merton.cognition.models.base import MODELS, Answer, ModelEntry, checked_answer
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.errors import (
    ErrorCode,
    InfrastructureError,
    InputError,
    InvalidAnswerError,
    MissingDependencyError,
    describe_error,
    is_infrastructure,
    missing_library,
    reason_of,
)
from merton.experiment.failed_models import failed_models
from merton.experiment.local import LocalPorts
from merton.experiment.plan import AgentSpec, ExperimentSpec, Trial
from merton.experiment.run import RunDirectory
from merton.experiment.runner import Runner, run_all
from merton.experiment.scoring import Evidence, score
from merton.experiment.trial import ReferenceRun, TrialReport, run_trial
from merton.experiment.undistorted import UndistortedRuns
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.results.text import harmless
from merton.results.trial_files import shown_answers
from merton.study.sections import gravest_first
from runs import details, records, small_run

HOWS = ("raises", "none", "no text", "distorted", "empty", "refuses", "blind", "package", "socket")


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failing models beside Merton's own."""
    for one in (MODELS, POLICIES):
        assert "sage" not in one  # read now, so that the additions go with the test
        monkeypatch.setattr(one, "_entries", dict(one._entries))
    for how in HOWS:
        name = f"vlm-{how.replace(' ', '-')}"
        settings = {"name": name, "how": how}
        MODELS._entries[name] = ModelEntry(
            name=name, description="", adapter="failing_models:Voiceless", settings=settings
        )
    for name, alone in (("vla-raises", False), ("vla-on-reference", True)):
        POLICIES._entries[name] = PolicyEntry(
            name=name,
            description="",
            adapter="failing_models:Motionless",
            settings={"on_reference_alone": alone},
            cameras=("top",),
        )


@pytest.fixture(scope="module")
def ports(renders: None) -> Iterator[LocalPorts]:
    with LocalPorts() as ports:
        yield ports


def experiment(vlm: str, vla: str = "hold", **changes: Any) -> ExperimentSpec:
    agent = AgentSpec(id="agent", vlm=vlm, vla=vla)
    values: dict[str, Any] = {"name": "t", "agents": (agent,), "tasks": ("reach",), "max_steps": 1, **changes}
    return ExperimentSpec(distortions=("max_darken",), levels=(0, 5), **values)


def done(ports: LocalPorts, monkeypatch: pytest.MonkeyPatch, spec: ExperimentSpec, level: int = 5) -> TrialReport:
    """A trial whose distorted pictures are black."""
    real = ports.view

    def view(*arguments: Any) -> Any:
        seen = real(*arguments)
        black = {name: replace(one, color=np.zeros_like(one.color)) for name, one in seen.distorted.items()}
        return replace(seen, distorted=black if level else seen.reference)

    monkeypatch.setattr(ports, "view", view)
    case = TestCase("reach", 0, "max_darken" if level else "reference", level)
    return run_trial(ports, spec, "id", Trial(spec.agents[0], case), None, ["a b", "c d"])


@pytest.mark.parametrize(
    ("vlm", "answers", "says"),
    [
        ("vlm-raises", (None, None), "vlm-raises gave no answer to either image: RuntimeError: shapes do not fit"),
        ("vlm-none", (None, None), "gave no answer to either image: vlm-none gave nothing (None) instead of an answer"),
        ("vlm-no-text", (None, None), "the answer of vlm-no-text is no text but nothing (None)"),
        ("vlm-refuses", (None, None), 'to either image: the answer is a refusal: "Sorry, I can\'t see the image."'),
        ("vlm-blind", ("the red", None), "vlm-blind gave no answer to the distorted image: the answer is a refusal:"),
        ("vlm-distorted", ("the red", None), "vlm-distorted gave no answer to the distorted image: RuntimeError"),
    ],
)
def test_without_two_answers_there_is_no_cognition_score(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch, vlm: str, answers: tuple[str | None, str | None], says: str
) -> None:
    report = done(ports, monkeypatch, experiment(vlm))
    record, evidence = report.record, report.evidence
    assert [text and text[:7] for text in evidence.answers] == list(answers)
    assert (record.cognition, record.error_code) == (None, ErrorCode.NO_ANSWER)
    assert says in record.error_message
    assert record.decision == 1.0, "the policy was asked, and its score stands"
    kept = json.loads(json.dumps(report.details))
    assert [text and text[:7] for text in kept["answers"].values()] == list(answers)
    assert "total" not in kept["cognition"]
    assert set(kept["unanswered"]) == {
        side for side, text in zip(("reference", "distorted"), answers, strict=True) if text is None
    }
    assert kept["error_message"] == record.error_message
    assert "(no answer)" in shown_answers(kept)
    done_so, other = (replace(record, outcome=Outcome.SUCCESS, error_code=code) for code in (record.error_code, 0))
    assert gravest_first([other, done_so], []) == [done_so, other], "a failed model stands before other successes"


def test_two_answers_without_a_word_are_none_and_one_is_an_answer(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = done(ports, monkeypatch, experiment("vlm-empty"))
    assert (report.record.cognition, report.record.error_code) == (None, ErrorCode.NO_ANSWER)
    assert report.details["answers"] == {"reference": None, "distorted": None}
    assert report.unanswered == dict.fromkeys(("reference", "distorted"), "the answer has no word")
    assert report.record.error_message.startswith("vlm-empty gave no answer to either image: the answer has no word")
    half = Evidence(("red cube", ""), (), None, None, np.eye(4))
    assert score(half, Outcome.SUCCESS).totals["cognition"] == 0.0
    assert score(replace(half, answers=("red cube", None)), Outcome.SUCCESS).totals["cognition"] is None


@pytest.mark.parametrize(("vlm", "says"), [("vlm-package", "AutoVideoProcessor"), ("vlm-socket", "refused")])
def test_a_missing_package_or_server_is_not_the_models_outcome(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch, vlm: str, says: str
) -> None:
    with pytest.raises(InfrastructureError, match=says):
        done(ports, monkeypatch, experiment(vlm))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch", "OutOfMemoryError"),
        ("httpx2", "ConnectError"),
        ("httpx2", "ReadTimeout"),
        ("openai", "APIConnectionError"),
        ("openai", "APITimeoutError"),
        ("websockets.exceptions", "ConnectionClosedError"),
        ("asyncio", "TimeoutError"),
        ("concurrent.futures", "TimeoutError"),
    ],
)
def test_the_infrastructure_is_known_by_the_names_of_its_libraries(module: str, name: str) -> None:
    kind = getattr(pytest.importorskip(module, exc_type=ImportError), name)
    assert is_infrastructure(kind.__new__(kind))
    assert not is_infrastructure(RuntimeError("CUDA error: an illegal memory access"))
    assert not is_infrastructure(InvalidAnswerError("no text"))


def test_a_class_of_a_library_is_no_outcome_of_the_model(ports: LocalPorts, monkeypatch: pytest.MonkeyPatch) -> None:
    import failing_models

    class OutOfMemoryError(RuntimeError):
        """As torch's, whose base it has."""

    def raises(*_: Any, **__: Any) -> Any:
        raise OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(failing_models.Voiceless, "answer", raises)
    monkeypatch.setattr(failing_models.Motionless, "act", raises)
    for vlm, vla in (("vlm-raises", "hold"), ("describe", "vla-raises")):
        with pytest.raises(InfrastructureError, match="CUDA out of memory"):
            done(ports, monkeypatch, experiment(vlm, vla))


def test_a_long_text_of_an_error_is_cut_where_it_is_caught_and_where_it_is_stored(tmp_path: Any) -> None:
    long = "not\n a shape " * 100_000
    for error in (ValueError(long), InvalidAnswerError(long)):
        assert len(reason_of(error)) < 1100
        assert "\n" not in reason_of(error)
    assert describe_error(ValueError("short")) == "ValueError: short"
    with ResultStore(tmp_path / "r.sqlite") as store:
        store.record(record_of("agent", Outcome.INVALID_ACTION, error_code=101, error_message=long))
    with ResultStore(tmp_path / "r.sqlite") as store:
        (read,) = store.records("id")
    assert len(read.error_message) == 10_000
    assert read.error_message.endswith("…")


def test_a_class_that_needs_a_missing_package_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    import failing_models

    def raises(error: Exception) -> Any:
        def init(self: Any, **_: Any) -> None:
            raise error

        return init

    monkeypatch.setattr(failing_models.Voiceless, "__init__", raises(ImportError("no module named flash_attn")))
    with pytest.raises(MissingDependencyError, match=r"vlm-raises needs a package.*flash_attn"):
        MODELS["vlm-raises"].build()
    monkeypatch.setattr(failing_models.Voiceless, "__init__", raises(RuntimeError("no GPU")))
    with pytest.raises(InfrastructureError, match="vlm-raises cannot be built: RuntimeError: no GPU"):
        MODELS["vlm-raises"].build()


def test_without_an_answer_a_coupled_policy_has_no_instruction(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is both models: it did nothing, and its policy is not asked to act on an empty text."""
    monkeypatch.setattr(ports, "act", lambda *_: pytest.fail("the policy was asked without an instruction"))
    record = done(ports, monkeypatch, experiment("vlm-raises", couple="vlm -> vla")).record
    assert (record.outcome, record.steps, record.cognition) == (Outcome.INVALID_ACTION, 0, None)
    assert record.error_code == ErrorCode.NO_ANSWER
    assert "shapes do not fit" in record.error_message
    assert "without an answer hold has no instruction" in record.error_message


def test_a_policy_that_fails_on_the_reference_alone_is_not_compared_and_goes_on(
    ports: LocalPorts, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = done(ports, monkeypatch, experiment("describe", "vla-on-reference")).record
    assert (record.outcome, record.steps, record.decision) == (Outcome.FAILURE, 1, None)
    assert record.error_code == ErrorCode.INVALID_ACTION
    assert "no decision on the reference images to compare with: RuntimeError: queues are empty" in record.error_message


def test_the_corpus_has_no_text_for_an_answer_that_was_not_given() -> None:
    spec = experiment("vlm-raises", reference_scenes=2)
    given = {0: None, 1: "the red cube", 2: ""}

    def stored(trial_id: str) -> ReferenceRun:
        return ReferenceRun(given[int(trial_id.split(".")[2])], np.eye(4), (), True)

    corpus = UndistortedRuns(spec, stored).corpus(Trial(spec.agents[0], TestCase("reach", 0, "max_darken", 5)))
    assert corpus == ("the red cube", "")


def test_only_a_text_is_an_answer() -> None:
    assert checked_answer(Answer("a cut off \ud83d and a zero\0"), "m").text == "a cut off ? and a zero"
    for output in (None, "red", Answer(b"red"), Answer(3)):  # type: ignore[arg-type]
        with pytest.raises(InvalidAnswerError, match="m "):
            checked_answer(output, "m")


def record_of(agent: str, outcome: Outcome = Outcome.FAILURE, **values: Any) -> TrialRecord:
    return TrialRecord("id", agent, TestCase("reach", 0, "reference", 0), outcome, **values)


def test_only_a_model_that_failed_in_every_trial_ends_the_run() -> None:
    spec = experiment("describe").model_copy(
        update={
            "agents": (
                AgentSpec(id="a", vlm="describe", vla="servo"),
                AgentSpec(id="b", vlm="describe", vla="vla-raises"),
            )
        }
    )
    mute: dict[str, Any] = {
        "error_code": int(ErrorCode.NO_ANSWER),
        "error_message": "describe gave no answer to either image: why",
    }
    still: dict[str, Any] = {"outcome": Outcome.INVALID_ACTION, "error_code": 101, "error_message": "queues"}
    assert failed_models(spec, [record_of("a", **mute), record_of("b")]) == [], "agents that share a VLM"
    assert failed_models(spec, [record_of("a", **mute), record_of("b", Outcome.INFRASTRUCTURE)]) == [
        "the VLM describe gave no answer to an image in its only trial: to either image: why"
    ]
    assert failed_models(spec, [record_of("a"), record_of("b", **still), record_of("b", **still)]) == [
        "the policy vla-raises gave no action in each of its 2 trials; the first: queues"
    ]
    doubly = {**still, "error_code": 102, "error_message": "describe gave no answer to either image: why; queues"}
    assert failed_models(spec, [record_of("a"), record_of("b", **doubly)]) == [
        "the policy vla-raises gave no action in its only trial: queues"
    ]
    assert failed_models(spec, [record_of("b", **still), record_of("b", **still, steps=1)]) == [], "it acted once"
    coupled = spec.model_copy(update={"couple": "vlm -> vla"})
    both = record_of("a", Outcome.INVALID_ACTION, **mute)
    assert len(failed_models(coupled, [both])) == 1, "a policy without an instruction was not asked"


@pytest.mark.usefixtures("renders")
def test_a_run_whose_models_always_fail_ends_with_their_sentences(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small_run(
        tmp_path,
        "broken",
        "name: broken\ntasks: [reach]\ndistortions: [jpeg]\nlevels: [5]\nmax_steps: 1\nagents:\n"
        "  - {id: mute, vlm: vlm-raises, vla: hold}\n  - {id: frozen, vla: vla-raises}\n  - {id: fine, vla: servo}\n",
    )
    with ResultStore(run.database) as store, LocalPorts() as world:
        run.register(store)
        runner = Runner(run.spec, run.id, world, run.reference_run)
        run_all(runner, run, {}, store.record, on_trial=lambda *_: None, on_fault=pytest.fail)
    assert {record.cognition for record in records(run) if record.agent == "mute"} == {None}
    assert [text for detail in details(run).values() for text in detail["answers"].values()].count(None) == 4
    assert RunDirectory(run.path).reference_run("mute.reach.0.reference.0").answer is None, "as a resumed run reads it"
    with pytest.raises(typer.Exit) as ended:
        commands._end(run, everything=True)
    said = capsys.readouterr()
    assert ended.value.exit_code == 1
    assert "the VLM vlm-raises gave no answer to an image in each of its 2 trials; the first: to either" in said.err
    assert (
        "the policy vla-raises gave no action in each of its 2 trials; the first: RuntimeError: queues are empty"
        in said.err
    )
    assert "Trials in which the VLM gave no answer, and which have no cognition score: mute 2." in said.out
    page = (run.path / "report.html").read_text()
    assert page.count("vlm-raises gave no answer to either image: RuntimeError: shapes do not fit") >= 1


def test_a_library_that_the_system_lacks_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the loader of Linux says it, of pinocchio on a machine without libgomp1."""
    lacking = ImportError("libgomp.so.1: cannot open shared object file: No such file or directory")
    assert "this system lacks libgomp.so.1: install libgomp1" in str(missing_library(lacking))
    assert missing_library(ImportError("cannot import name 'x' from 'y'")) is None
    assert missing_library(ModuleNotFoundError("No module named 'y'")) is None

    def broken(**_: Any) -> None:
        raise lacking

    monkeypatch.setattr(main, "app", broken)
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith("merton: this system lacks libgomp.so.1: install libgomp1")


def test_a_record_is_claimed_once_by_whatever_link(tmp_path: Any) -> None:
    link = tmp_path / "s.sqlite"
    with ResultStore(tmp_path / "r.sqlite") as store:
        link.symlink_to(tmp_path / "r.sqlite")
        with ResultStore(link) as other:
            store.database.claim("merton people serve", "study")
            with pytest.raises(InputError, match="another merton people serve"):
                other.database.claim("merton people serve", "study")
            other.record(record_of("agent"))
            (tmp_path / "r.sqlite-wal").unlink()
            with pytest.raises(InfrastructureError):
                other.record(record_of("another"))


def test_an_adapter_without_a_shared_library_is_no_mistake_of_the_user(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    text = "libGL.so.1: cannot open shared object file: No such file"
    (tmp_path / "blind_lab.py").write_text(f"raise ImportError({text!r})\n")
    with pytest.raises(MissingDependencyError, match="install libgl1"):
        ModelEntry(name="lab", description="", adapter="blind_lab:Model").build()


def test_marks_of_direction_and_separators_of_lines_are_harmless() -> None:
    for character in "\u200e\u200f\u061c\u2028\u2029\u202e\u2066":
        assert harmless(f"a{character}b") == "a\ufffdb"
    assert harmless("a\n\tb\u200d") == "a\n\tb\u200d", "a joiner, as of emoji, turns nothing around"
