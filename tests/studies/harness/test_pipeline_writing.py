"""Programs that a language model writes: rounds, diagnostics, and budgets, with a server that answers by a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted_llm import llm_entry, prompts, said, scripted_llm
from test_evaluation import pool
from typer.testing import CliRunner
from unguarded import Unguarded

from merton.cli.main import app
from merton.cognition.models.base import MODELS
from merton.errors import InfrastructureError, InputError
from merton_studies.annotate.cache import Cache
from merton_studies.curation.budget import Budget
from merton_studies.curation.llm.asker import TEMPERATURE, Asker
from merton_studies.curation.pool import Pool, write_pool
from merton_studies.harness.answerers import answerers
from merton_studies.harness.pipeline import composed, read_pipeline
from merton_studies.harness.reply import Reply
from merton_studies.harness.writing import Written, written

FEW = Pool.of([one for one in pool(36).questions if one.answer_kind in ("choice", "yes_no")], pool().sources.values())
RIGHT = composed(["choice", "yes_no"])


def answer(program: str) -> str:
    return json.dumps({"program": program})


INFER = answer(RIGHT.infer)
SCORE = answer(RIGHT.score)
RAISES = answer("def score(case, prediction):\n    return case['gold_label'] == prediction\n")
TOO_MUCH = answer("def score(case, prediction):\n    return 1.7\n")
ALWAYS = answer("def score(case, prediction):\n    return 1.0\n")


def write(out: Path, *script: str, max_calls: int | None = None) -> tuple[Written, list[str]]:
    with scripted_llm(*script) as wire, Cache(out / "cache.sqlite") as cache:
        asker = Asker(llm_entry(wire), cache, Budget(max_calls))
        (model,) = answerers(["oracle-0.5"], FEW)
        found = written(asker, FEW.questions, model, Unguarded(), out / "pipeline", 0)
        return found, prompts(wire)


def test_the_scorer_that_raises_then_gives_too_much_is_right_in_the_third_round(tmp_path: Path) -> None:
    found, asked = write(tmp_path, INFER, RAISES, TOO_MUCH, SCORE)
    assert [(one.role, one.number, not one.faults) for one in found.rounds] == [
        ("infer", 1, True),
        ("score", 1, False),
        ("score", 2, False),
        ("score", 3, True),
    ]
    assert len(asked) == 4
    assert "return case['gold_label'] == prediction" in asked[2].partition('name="diagnostics"')[2], (
        "the traceback's line"
    )
    assert "KeyError: 'gold_label'" in asked[2]
    assert "score returned 1.7, which is not in 0..1" in asked[3]
    assert '"prediction"' in asked[1], "the scorer is written for the predictions of the inference program"
    assert '"answer":' not in asked[0], "the writer of the inference program is shown no answers"
    kept = tmp_path / "pipeline" / "rounds"
    assert sorted(path.name for path in kept.iterdir()) == ["infer-1", "score-1", "score-2", "score-3"]
    assert "gold_label" in (kept / "score-1" / "score.py").read_text()
    assert json.loads((kept / "score-2" / "diagnostics.json").read_text())["valid"] is False
    pipeline = read_pipeline(tmp_path / "pipeline")
    assert pipeline == found.pipeline
    assert (pipeline.score, pipeline.origin, pipeline.made["rounds"]) == (
        RIGHT.score,
        "written",
        {"infer": 1, "score": 3},
    )


def test_a_scorer_that_never_becomes_valid_ends_without_a_score(tmp_path: Path) -> None:
    found, asked = write(tmp_path, INFER, ALWAYS)
    assert found.pipeline is None
    assert "no valid scoring program in 5 rounds" in found.ended
    assert len(found.rounds) == 6
    assert "an empty prediction for a case with answer_kind" in asked[-1], "the property is told"
    assert "The case:" not in asked[-1].partition('name="diagnostics"')[2], "its case is not"
    assert not (tmp_path / "pipeline" / "pipeline.json").exists()


def test_an_answer_without_a_program_is_a_round_and_a_spent_budget_an_end(tmp_path: Path) -> None:
    found, asked = write(tmp_path / "1", "I am sorry.", "No.", INFER, SCORE)
    assert [len(one.faults) for one in found.rounds] == [1, 0, 0]
    assert "the answer had no program" in asked[2]
    assert found.pipeline is not None
    found, _ = write(tmp_path / "2", INFER, RAISES, SCORE, max_calls=2)
    assert found.pipeline is None
    assert [one.role for one in found.rounds] == ["infer", "score"]
    assert "--max-calls" in found.ended or "calls" in found.ended


def test_rounds_after_the_first_are_sampled_and_a_repeated_program_is_named(tmp_path: Path) -> None:
    """A greedy model that was asked three times wrote `pass` three times."""
    passes = answer("def predict(case, ask):\n    pass\n")
    with scripted_llm(passes, passes, passes, INFER, SCORE) as wire, Cache(tmp_path / "cache.sqlite") as cache:
        (model,) = answerers(["oracle-0.5"], FEW)
        found = written(Asker(llm_entry(wire), cache, Budget()), FEW.questions, model, Unguarded(), tmp_path / "out")
        asked = [(request.body["temperature"], request.body["seed"]) for request in wire.requests]
        shown = prompts(wire)
    assert found.pipeline is not None
    assert [temperature for temperature, _ in asked] == [0.0, TEMPERATURE, TEMPERATURE, TEMPERATURE, 0.0]
    assert len(set(asked[:4])) == 4, "each with a seed of its own"
    assert "this is the program of round 1 again, letter for letter" in shown[2]
    assert found.rounds[2].faults[1:] == found.rounds[0].faults, "and the fault that it has is told again"
    assert found.pipeline.made["writer"]["temperature_of_further_rounds"] == TEMPERATURE


def test_a_program_that_is_the_example_of_the_prompt_is_no_program(tmp_path: Path) -> None:
    example = answer("def predict(case, ask):\n    ...")
    found, asked = write(tmp_path, example, INFER, SCORE)
    assert [len(one.faults) for one in found.rounds] == [0, 0], "it was asked for again in the same round"
    assert "program repeats the example of the prompt" in asked[1]


def test_the_command_says_why_nothing_was_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pool(FEW, tmp_path / "pool")
    with scripted_llm("no") as wire:
        len(MODELS)  # reads the catalogue
        monkeypatch.setitem(MODELS._entries, "scripted", llm_entry(wire))
        words = ["curate", "evaluate", str(tmp_path / "pool"), "-o", str(tmp_path / "out"), "--answerer", "chance"]
        ended = CliRunner().invoke(app, [*words, "--writer", "scripted", "--max-calls", "3"])
    assert ended.exit_code == 3, ended.output
    assert "nothing was scored" in ended.output
    done = CliRunner().invoke(app, [*words, "--fidelity"])
    assert done.exit_code == 0, done.output
    assert (
        "fidelity of chance to Merton's second implementation: overall 100.0 %, scoring 100.0 %, inference 100.0 %"
        in done.output
    )


def test_a_limit_without_a_writer_is_refused(tmp_path: Path) -> None:
    write_pool(FEW, tmp_path / "pool")
    words = ["curate", "evaluate", str(tmp_path / "pool"), "-o", str(tmp_path / "out"), "--answerer", "chance"]
    with pytest.raises(InputError, match="--max-calls limits calls of models: name one with --writer"):
        CliRunner().invoke(app, [*words, "--max-calls", "3"], catch_exceptions=False)
    with pytest.raises(InputError, match="--max-cost needs a price: set cost_per_1000 of describe"):
        CliRunner().invoke(app, [*words, "--writer", "describe", "--max-cost", "3"], catch_exceptions=False)


def test_a_model_that_failed_at_every_question_leaves_the_others_and_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    write_pool(pool(4), tmp_path / "pool")
    words = ["curate", "evaluate", str(tmp_path / "pool"), "-o", str(tmp_path / "out"), "--answerer", "scripted"]
    with scripted_llm(said("<think>It may be, or it may", "length")) as wire:
        len(MODELS)  # reads the catalogue
        monkeypatch.setitem(MODELS._entries, "scripted", llm_entry(wire))
        ended = CliRunner().invoke(app, [*words, "--answerer", "chance"])
        alone = CliRunner().invoke(app, words)
    assert ended.exit_code == 3, ended.output
    assert alone.exit_code == 1, alone.output  # nothing has a score
    assert "scripted has no score: every question failed" in ended.stderr
    assert "chance: " in ended.stdout


def test_limits_hold_for_answerers_and_what_was_cut_off_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    write_pool(pool(4), tmp_path / "pool")
    words = ["curate", "evaluate", str(tmp_path / "pool"), "-o", str(tmp_path / "out")]
    both = [*words, "--answerer", "scripted", "--answerer", "chance"]
    with scripted_llm(said("<think>It may be, or it may", "length")) as wire:
        len(MODELS)  # reads the catalogue
        monkeypatch.setitem(MODELS._entries, "scripted", llm_entry(wire))
        for _ in range(2):  # started again, it makes no call more
            spent = CliRunner().invoke(app, [*both, "--max-calls", "3"])
            assert spent.exit_code == 3, spent.output
            assert len(wire.requests) == 3
        done = CliRunner().invoke(app, [*both, "--max-tokens", "700"])
        assert done.exit_code == 3, done.output  # no question of the model has a score
        assert [request.body["max_tokens"] for request in wire.requests] == [32] * 3 + [700] * 4
    assert "4 cut off, 4 of them before any answer: raise --max-tokens" in done.output
    with pytest.raises(InputError, match="--max-tokens limits answers of models"):
        CliRunner().invoke(app, [*words, "--answerer", "chance", "--max-tokens", "9"], catch_exceptions=False)


def test_the_command_scores_a_log_and_compares_it_with_the_benchmarks_own_scorer(tmp_path: Path) -> None:
    write_pool(pool(6), tmp_path / "pool")
    (tmp_path / "log.csv").write_text("id,prediction\nq000,red cube\nq001,0.25\nq003,yes\nq999,yes\n")
    (tmp_path / "own.py").write_text("def hit(question, prediction):\n    return prediction != '0.25'\n")
    words = ["curate", "evaluate", str(tmp_path / "pool"), "-o", str(tmp_path / "out")]
    words += ["--predictions", f"qwen={tmp_path / 'log.csv'}", "--scorer", f"made={tmp_path / 'own.py'}:hit"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "qwen: 1 row of log.csv about no question of the benchmark, such as 'q999'" in done.stderr
    assert "3 without an answer, the first because: no prediction in log.csv" in done.stdout
    assert "reference of made: the benchmark's own scorer, own.py, sha256 " in done.stdout
    assert "fidelity of qwen on made: 66.7 % of 3 questions with the same score" in done.stdout
    for more, sentence in (
        (["--answerer", "qwen"], "unknown answerer 'qwen'"),
        (["--writer", "describe"], "--writer tries its programs on an answerer: name one with --answerer"),
        (["--predictions", f"chance={tmp_path / 'log.csv'}", "--answerer", "chance"], "have the same name 'chance'"),
    ):
        with pytest.raises(InputError, match=sentence):
            CliRunner().invoke(app, [*words, *more], catch_exceptions=False)
    with pytest.raises(InputError, match="nothing is to be scored"):
        CliRunner().invoke(app, words[:5], catch_exceptions=False)


def test_no_program_is_judged_by_an_answer_that_was_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model,) = answerers(["oracle-0.5"], FEW)
    monkeypatch.setattr(type(model), "answer", lambda *_: Reply("", unasked="m failed: no text"))
    with pytest.raises(InfrastructureError, match="gave no answer to try a program with: m failed: no text"):
        write(tmp_path, INFER, SCORE)
