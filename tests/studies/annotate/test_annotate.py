"""Annotation: no request is repeated, a kill does not change the tables, and failures differ from answers."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import annotate_models
import cv2
import numpy as np
import pytest
from PIL import Image as Pillow

from merton.cli import main as cli
from merton.cognition.models.base import MODELS, ModelEntry
from merton.cognition.score import score as cognition_score
from merton.cognition.text import Cider
from merton.config import dumps
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.score import score as decision_score
from merton.errors import InfrastructureError, InputError, MissingDependencyError, UnknownNameError
from merton.files import locked_folder
from merton.models.catalogue import VARIABLE
from merton.perception.dataset import build
from merton.perception.dataset.intake import decode
from merton.perception.distortion import DISTORTIONS
from merton.perception.images import encode_image
from merton.pool import ATTEMPTS, Engine, LocalEngine, open_pool
from merton.study import models, report
from merton.world.action import ActionChunk
from merton.world.cell import load_cell
from merton_studies.annotate import identity as who
from merton_studies.annotate import prompting, views
from merton_studies.annotate.answers import import_answers
from merton_studies.annotate.cache import Cache, CachedResponse
from merton_studies.annotate.dataset import DatasetImage, ReferenceImage, pixels_sha256, read_dataset
from merton_studies.annotate.prompting import ModelRunner
from merton_studies.annotate.run import ROUNDS, Progress, Summary, annotate
from merton_studies.annotate.tables import ANNOTATIONS, LOG, SCORES, value_of
from merton_studies.annotate.work import Job, rows_and_jobs
from merton_studies.cli import annotate as commands
from merton_studies.opinions import opinion
from patience import until
from thread_engine import Died, ThreadEngine

MODELS_PATH = os.pathsep.join((str(Path(annotate_models.__file__).parent), os.environ.get("PYTHONPATH", "")))
"""By which other processes find the models of the tests."""
TASKS = ["Push the red cube to the left", "Pick up the red cube", "Move the cup", "Place the cup here", "Pour it out"]
REFERENCES = 3
IMAGES = REFERENCES * (1 + len(DISTORTIONS))
CATALOGUE = {
    "vlm": [
        {"name": "teller", "adapter": "annotate_models:Teller", "cost_per_1000": 2.0},
        {"name": "blinded", "adapter": "annotate_models:Teller", "settings": {"name": "blinded", "fails": True}},
        *(
            {"name": how, "adapter": "annotate_models:Faulty", "settings": {"how": how}}
            for how in ("dead", "bug", "missing")
        ),
    ],
    "vla": [{"name": "leaner", "adapter": "annotate_models:Leaner", "cameras": ["top", "wrist"]}],
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three small references, all types at one random level."""
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    folder = tmp_path_factory.mktemp("annotate")
    (folder / "in").mkdir()
    tags = {"domain": "real", "perspective": "first_person", "object": "container", "background": "table"}
    for seed in range(REFERENCES):
        coarse = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
        image = cv2.resize(coarse, (48, 40), interpolation=cv2.INTER_CUBIC)
        (folder / "in" / f"r{seed}.png").write_bytes(encode_image(np.asarray(image, np.uint8)))
    described = {f"r{seed}.png": {**tags, "tasks": TASKS} for seed in range(REFERENCES)}
    (folder / "in" / "tags.yaml").write_text(dumps(described))
    build(folder / "in", folder / "built", workers=1)
    return folder / "built"


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models of this file in the catalogue, of subprocesses too; returns where calls are counted."""
    entries: dict[str, list[dict[str, Any]]] = {
        kind: [{"description": "of the tests", **entry} for entry in found] for kind, found in CATALOGUE.items()
    }
    for how in ("once", "some", "dies"):
        settings = {"how": how, "marker": str(tmp_path / how)}
        found = {"name": how, "description": "of the tests", "adapter": "annotate_models:Faulty", "settings": settings}
        entries["vlm"].append(found)
    file = tmp_path / "catalogue.yaml"
    file.write_text(dumps(entries))
    calls = tmp_path / "calls"
    calls.touch()
    monkeypatch.setenv(VARIABLE, str(file))
    monkeypatch.setenv("MERTON_TEST_CALLS", str(calls))
    for each in (MODELS, POLICIES):
        monkeypatch.setattr(each, "_entries", {})
        monkeypatch.setattr(each, "_read", False)
    return calls


def calls_in(file: Path) -> list[str]:
    return file.read_text().splitlines()


def rows_of(file: Path) -> list[dict[str, Any]]:
    from merton.perception.dataset.tables import read_table

    return read_table(file)


def outcome(folder: Path) -> tuple[bytes, bytes]:
    return (folder / ANNOTATIONS).read_bytes(), (folder / SCORES).read_bytes()


def run(
    dataset: Path, names: list[str], folder: Path, engine: Engine | None = None, workers: int = 1, **more: Any
) -> Summary:
    """Annotate, by one thread of this process unless an engine is named."""
    prompting._runner.cache_clear()  # no model of an earlier run
    with open_pool(workers, engine or ThreadEngine()) as pool:
        return annotate(dataset, names, folder, **{"cache": folder / "cache.sqlite", "pool": pool, **more})


# What comes out -------------------------------------------------------------------------------------------------------


def test_tables_and_a_second_run_from_the_cache(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    first = run(dataset, ["teller", "leaner"], tmp_path / "one", on_progress=told.append)
    asked = calls_in(catalogue)
    assert first.rows == 2 * IMAGES * len(TASKS)
    assert first.requested == len(asked) <= first.rows
    assert (first.cached, first.unanswered) == (0, 0)
    assert first.cost == pytest.approx(0.002 * sum(call.startswith("teller") for call in asked))
    assert (told[-1].done, told[-1].total, told[-1].cost_left) == (first.rows, first.rows, 0.0)
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)

    found = rows_of(tmp_path / "one" / ANNOTATIONS)
    assert [row["model"] for row in found] == ["teller"] * (first.rows // 2) + ["leaner"] * (first.rows // 2)
    expected = [("reference", 0)]
    expected += [(row["distortion"], row["level"]) for row in rows_of(dataset / "manifest.parquet")][:30]
    assert [(row["distortion"], row["level"]) for row in found[: 31 * 5 : 5]] == expected
    assert [row["task"] for row in found[:10]] == TASKS * 2
    check_scores(found)

    second = run(dataset, ["teller", "leaner"], tmp_path / "two", cache=tmp_path / "one" / "cache.sqlite")
    assert calls_in(catalogue) == asked
    assert (second.requested, second.cached) == (0, first.requested)
    assert outcome(tmp_path / "two") == outcome(tmp_path / "one")
    assert {row["hit"] for row in rows_of(tmp_path / "one" / LOG)} == {False}
    assert {row["hit"] for row in rows_of(tmp_path / "two" / LOG)} == {True}

    table = models.from_parquet(tmp_path / "one" / SCORES)
    assert set(models.stages(table)) == {"cognition", "decision"}
    assert models.profiles(table, "cognition")[0].levels[0] == models.TableCell(1.0, REFERENCES * len(TASKS))
    page = report.write_models_page(tmp_path / "one" / SCORES, tmp_path / "page.html")
    assert "leaner" in page.read_text()
    check_opinions(tmp_path / "one", found)


def check_opinions(out: Path, found: list[dict[str, Any]]) -> None:
    """The opinions beside the scores have every copy once, with the sums of the scores in the table.

    A copy with a task at which the model failed has no opinion.
    """
    made = opinion.read_opinions(out / opinion.OPINIONS)
    assert len(made.level) == REFERENCES * len(DISTORTIONS)
    assert made.about["subjects"] == {"cognition": ["teller"], "decision": ["leaner"]}
    sums = {name: dict.fromkeys(made.reference_id.tolist(), 0.0) for name in ("bleu", "position")}
    for name, of_reference in sums.items():
        of_copy: dict[tuple[str, str, int], list[float]] = {}
        for row in found:
            if row["level"] > 0 and row[name] is not None:
                of_copy.setdefault((row["reference"], row["distortion"], row["level"]), []).append(row[name])
        for (reference, _, _), scores in of_copy.items():
            if len(scores) == len(TASKS):
                of_reference[reference] += sum(scores)
        for reference, total in of_reference.items():
            assert np.nansum(made.value(name)[made.reference_id == reference]) == pytest.approx(total, abs=1e-9)
    assert set(made.about["chance"]) <= {"cognition", "decision"}
    assert (opinion.read_subjects(out / opinion.SUBJECTS).level == 0).sum() == REFERENCES


def check_scores(found: list[dict[str, Any]]) -> None:
    """Every score follows by the formulas from the answers in the table."""
    references = {(r["model"], r["reference"], r["task"]): r for r in found if r["level"] == 0}
    cider = Cider(r["answer"] for r in references.values() if r["model"] == "teller")
    failed = 0
    for row in found:
        reference = references[row["model"], row["reference"], row["task"]]
        if row["model"] == "teller":
            assert row["outcome"] == "answered"
            score = cognition_score(reference["answer"], row["answer"], cider)
            assert (row["cognition"], row["bleu"], row["rouge_l"]) == (score.total, score.bleu, score.rouge_l)
            assert row["cider"] == (None if score.cider is None else score.cider / 10)
            assert row["decision"] is None
        elif reference["outcome"] == "failed":
            assert row["decision"] is None
        elif row["outcome"] == "failed":
            failed += 1
            assert "not finite" in row["reason"]
            assert (row["decision"], row["state"], row["deltas"]) == (None, None, None), "a failure is no score"
        else:
            chunks = [ActionChunk(np.array(r["deltas"]), r["step_s"], r["frame"]) for r in (reference, row)]
            assert row["decision"] == decision_score(*chunks).total
            assert row["cognition"] is None
    assert failed > 0
    assert min(row["cognition"] for row in found if row["model"] == "teller") < 0.9


def test_a_failing_model_is_an_outcome_of_that_request_alone(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    summary = run(dataset, ["blinded"], tmp_path / "one")
    assert summary.failed > 0 == summary.unanswered
    found = rows_of(tmp_path / "one" / ANNOTATIONS)
    failed = [row for row in found if row["outcome"] == "failed"]
    assert len(failed) == summary.failed < len(found)
    assert {(row["reason"], row["answer"]) for row in failed} == {("blinded", None)}
    assert {row["cognition"] for row in failed} == {None}, "two failures are equal, and no answers"
    asked = len(calls_in(catalogue))
    assert run(dataset, ["blinded"], tmp_path / "one").requested == 0
    assert len(calls_in(catalogue)) == asked


def test_a_refusal_is_a_failure_of_the_model_with_its_words() -> None:
    def value(text: str) -> dict[str, Any] | None:
        return value_of(CachedResponse(json.dumps({"text": text, "truncated": False}), 0.1))

    assert value("I cannot see a red cup on the table.") == {
        "text": "I cannot see a red cup on the table.",
        "truncated": False,
    }
    assert value("<think>hm</think>Sorry, I can't see the image.") == {
        "failed": 'the answer is a refusal: "Sorry, I can\'t see the image."',
        "truncated": False,
    }


def test_each_request_of_a_batch_has_an_outcome_of_its_own(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    """Of the first batch two requests fail: they alone are repeated, and the failure of the model is stored."""
    summary = run(dataset, ["some"], tmp_path / "one")
    assert (summary.unanswered, summary.failed) == (0, 1)
    assert len(calls_in(catalogue)) == summary.requested + 2
    assert [row["reason"] for row in rows_of(tmp_path / "one" / ANNOTATIONS) if row["outcome"] == "failed"] == [
        "blinded"
    ]


# Killed, resumed ------------------------------------------------------------------------------------------------------


def command(dataset: Path, folder: Path, names: Sequence[str], *more: str) -> list[str]:
    chosen = [f"--model={name}" for name in names]
    where = [f"--out={folder}", f"--cache={folder / 'cache.sqlite'}"]
    return [sys.executable, "-m", "merton", "annotate", str(dataset), *chosen, *where, *more]


def kept(cache: Path) -> int:
    """Responses in a cache that another process writes."""
    if not cache.exists():
        return 0
    connection = sqlite3.connect(cache)
    try:
        return int(connection.execute("SELECT count(*) FROM responses").fetchone()[0])
    except sqlite3.OperationalError:  # no table yet
        return 0
    finally:
        connection.close()


def test_the_tables_after_two_kills_are_the_same(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    run(dataset, ["teller", "leaner"], tmp_path / "whole")
    once = Counter(calls_in(catalogue))
    out, batch, workers = tmp_path / "killed", 2, 2
    under_way = workers * batch * len(TASKS)
    environment = {**os.environ, "PYTHONPATH": MODELS_PATH}
    asked: Counter[str] = Counter()
    known = 0
    for halt in (100, 500):
        catalogue.write_text("")
        halted = tmp_path / f"halted_{halt}"  # of its own: a worker of the last run may outlive it for a moment
        os.mkfifo(halted)
        process = subprocess.Popen(
            command(dataset, out, ["teller", "leaner"], f"--batch={batch}", f"--workers={workers}"),
            env={**environment, "MERTON_TEST_HALT_AFTER": str(halt), "MERTON_TEST_HALTED": str(halted)},
            stderr=subprocess.DEVNULL,
        )
        with halted.open("rb") as pipe:  # waits for the first worker to open the other end
            for _ in range(workers):
                pipe.read(1)
        calls = calls_in(catalogue)  # of this run alone: it asks again what was under way at the kill before
        written = known + len(calls) - under_way
        until(lambda written=written: kept(out / "cache.sqlite") >= written)  # what they had done is being written
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (out / ANNOTATIONS).exists()
        asked.update(calls)
        known = kept(out / "cache.sqlite")
        assert known < sum(once.values())
    catalogue.write_text("")
    assert run(dataset, ["teller", "leaner"], out, batch=batch).cached == known >= 600 - 2 * under_way
    assert outcome(out) == outcome(tmp_path / "whole")
    # what was under way at a kill, at most a batch of each worker, is asked once more
    asked.update(calls_in(catalogue))
    assert not once - asked
    assert sum((asked - once).values()) <= 2 * under_way


def test_two_runs_do_not_write_into_one_folder(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    with (
        locked_folder(tmp_path / "out", "merton annotate"),
        pytest.raises(InputError, match="another merton annotate is at work"),
    ):
        run(dataset, ["teller"], tmp_path / "out")
    assert run(dataset, ["teller"], tmp_path / "out").unanswered == 0


def test_batches_do_not_depend_on_the_cache(dataset: Path, catalogue: Path) -> None:
    entry = who.entry_of("teller")
    shown = read_dataset(dataset)
    rows, jobs = rows_and_jobs(entry, {}, shown, 4)
    assert len(rows) == IMAGES * len(TASKS)
    keys = [key for job in jobs for key in job.keys]
    assert len(keys) == len(set(keys)) == len({row.key for row in rows})
    assert list(dict.fromkeys(row.key for row in rows)) == keys
    assert max(len(job.items) for job in jobs) == 4


# Keys -----------------------------------------------------------------------------------------------------------------


def dataset_image(image: np.ndarray, reference_pixels: str = "r") -> DatasetImage:
    reference = ReferenceImage("x", "real", "third_person", (TASKS[0],), reference_pixels)
    return DatasetImage(reference, "jpeg", 3, Path("x.png"), pixels_sha256(image), (image.shape[1], image.shape[0]))


def key(entry: ModelEntry | PolicyEntry, image: np.ndarray, reference_pixels: str = "r") -> str:
    rows, _ = rows_and_jobs(entry, who.identity(entry, entry.build()), [dataset_image(image, reference_pixels)], 1)
    return rows[0].key


def test_a_key_covers_everything_that_matters_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 48, 3), dtype=np.uint8)
    base: dict[str, Any] = {
        "name": "x",
        "description": "",
        "adapter": "annotate_models:Teller",
        "checkpoint": "a/b",
        "revision": "1",
    }
    entry = ModelEntry(**base)
    other_file = io.BytesIO()
    Pillow.fromarray(image).save(other_file, "PNG", compress_level=0)
    same = [
        key(entry, image),
        key(entry, decode(other_file.getvalue())),
        key(ModelEntry(**{**base, "name": "y", "description": "else", "requests_per_minute": 3.0}), image),
    ]
    assert len(set(same)) == 1
    changed = image.copy()
    changed[3, 4, 1] ^= 1
    different = [
        key(entry, image),
        key(entry, changed),
        key(entry, image.reshape(48, 40, 3)),
        key(ModelEntry(**{**base, "revision": "2"}), image),
        key(ModelEntry(**{**base, "checkpoint": "a/c"}), image),
        key(ModelEntry(**{**base, "prompt": "{question} Be brief."}), image),
        key(ModelEntry(**{**base, "settings": {"fails": True}}), image),
        key(ModelEntry(**base, image={"resize": "nearest"}), image),
    ]
    monkeypatch.setattr(annotate_models.Teller, "adapter_version", "2")
    different.append(key(entry, image))
    monkeypatch.setattr(annotate_models.Teller, "adapter_version", "")
    different.append(key(entry, image))
    assert len(set(different)) == len(different)


def test_the_address_of_a_server_counts_only_without_a_revision() -> None:
    pytest.importorskip("httpx2", reason="the extra remote is not installed")

    def of(port: int, **more: str) -> dict[str, Any]:
        settings = {"url": f"http://127.0.0.1:{port}/v1", "patience": {"attempts": port}}
        entry = ModelEntry(name="x", description="", adapter="openai_chat", settings=settings, **more)
        return who.identity(entry, entry.build())

    assert of(1, checkpoint="a/b", revision="1") == of(2, checkpoint="a/b", revision="1")
    assert of(1) != of(2)


def test_weights_in_a_folder_are_known_by_their_hash(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"one")
    entry = ModelEntry(name="x", description="", adapter="annotate_models:Teller", checkpoint=str(folder))
    before = who.identity(entry, entry.build())
    assert who.identity(entry, entry.build()) == before
    (folder / "model.safetensors").write_bytes(b"two")
    assert who.identity(entry, entry.build())["revision"] != before["revision"]


def test_an_adapter_without_a_version_is_known_by_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from merton.models.blobs import find_blobs\nfrom annotate_models import Teller\nclass Mine(Teller):\n"
    (tmp_path / "mine_of_the_tests.py").write_text(f"{source}    adapter_version = ''\n")
    (tmp_path / "mine_of_the_tests.npz").write_bytes(b"weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = ModelEntry(name="x", description="", adapter="mine_of_the_tests:Mine")
    model = entry.build()
    version = who.identity(entry, model)["adapter_version"]
    (tmp_path / "mine_of_the_tests.npz").write_bytes(b"others")
    again = who.identity(entry, model)["adapter_version"]
    monkeypatch.setattr(who, "_imports", lambda file: set())
    assert len({version, again, who.identity(entry, model)["adapter_version"]}) == 3


def test_a_pair_shares_its_noise_and_other_references_have_their_own(catalogue: Path) -> None:
    entry = who.entry_of("leaner")
    reference = ReferenceImage("x", "real", "third_person", (TASKS[0],), "pixels")
    both = [DatasetImage(reference, "jpeg", level, Path("x"), str(level), (8, 8)) for level in (0, 3)]
    other = DatasetImage(
        ReferenceImage("x", "real", "third_person", (TASKS[0],), "others"), "jpeg", 3, Path("x"), "4", (8, 8)
    )
    _, jobs = rows_and_jobs(entry, {}, [*both, other], 1)
    seeds = [request.seed for job in jobs for item in job.items for request in item.requests]
    assert seeds[0] == seeds[1] != seeds[2]


# What goes wrong ------------------------------------------------------------------------------------------------------


def test_failures_outside_the_model_are_retried_then_left_open(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    assert run(dataset, ["once"], tmp_path / "once").unanswered == 0
    for name, reason, times in (
        ("dead", "the server is dead", ROUNDS),
        ("bug", "ZeroDivisionError: a bug", ROUNDS),
        ("missing", "the weights are not here: fetch them", 1),
    ):
        catalogue.write_text("")
        summary = run(dataset, [name, "teller"], tmp_path / name)
        assert summary.unanswered == IMAGES * len(TASKS)
        assert summary.reasons == (f"{name}: {reason}",)
        found = rows_of(tmp_path / name / ANNOTATIONS)
        assert {(row["outcome"], row["reason"]) for row in found if row["model"] == name} == {("unanswered", reason)}
        assert {row["outcome"] for row in found if row["model"] == "teller"} == {"answered"}
        assert {row["cognition"] for row in found if row["model"] == name} == {None}
        assert models.from_parquet(tmp_path / name / SCORES).model.tolist().count(name) == 0
        asked = sum(call.startswith("faulty") for call in calls_in(catalogue))
        requests = kept(tmp_path / name / "cache.sqlite")  # as many as of teller
        assert asked == times * requests


def test_exit_code_and_how_to_continue(
    dataset: Path, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "_engine", lambda *_: ThreadEngine())
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process keeps its own handlers
    monkeypatch.setattr(sys, "argv", command(dataset, tmp_path / "out", ["dead"])[2:])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == commands.INCOMPLETE == 3
    said = capsys.readouterr().err
    assert "unanswered: dead: the server is dead" in said
    how = said.partition("Continue with: ")[2]
    assert f"merton annotate {dataset} --model=dead" in how
    monkeypatch.setattr(sys, "argv", command(dataset, tmp_path / "out", ["teller"])[2:])
    with pytest.raises(SystemExit) as finished:
        cli.main()
    assert finished.value.code == 0
    assert "teller" in (tmp_path / "out" / commands.PAGE).read_text()


def test_a_worker_that_dies_is_replaced(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    summary = run(dataset, ["dies"], tmp_path / "out", LocalEngine())
    assert (summary.unanswered, summary.failed) == (0, 0)
    assert summary.requested < len(calls_in(catalogue))


def test_a_job_that_every_worker_dies_of_is_left_open_and_the_others_are_done(
    dataset: Path, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests are tried in every round, by `ATTEMPTS` workers each."""
    runner, deaths = ModelRunner.run, []

    def run_or_die(self: ModelRunner, job: Job) -> Any:
        if job.items[0].file.name == "r1.png":
            deaths.append(job.one_by_one)
            raise Died
        return runner(self, job)

    monkeypatch.setattr(ModelRunner, "run", run_or_die)
    summary = run(dataset, ["teller"], tmp_path / "out", batch=1)
    assert summary.unanswered == len(TASKS)
    assert summary.reasons == (
        f"teller: teller at r1.png: each of {ATTEMPTS} workers died of it; was there too little memory?",
    )
    assert deaths == [False] * ATTEMPTS + [True] * ATTEMPTS * (ROUNDS - 1)


def test_no_worker_is_started_where_every_answer_is_cached(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    run(dataset, ["teller"], tmp_path / "one")
    engine = ThreadEngine()
    assert run(dataset, ["teller"], tmp_path / "two", engine, cache=tmp_path / "one" / "cache.sqlite").requested == 0
    assert (engine.hired, engine.closed) == (0, True)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["oracle"], "the simulator's state"),
        (["servo"], "needs depth"),
        (["teller", "teller"], "named once"),
        ([], "at least one model"),
    ],
)
def test_models_that_need_more_than_an_image_are_refused(
    names: list[str], message: str, dataset: Path, catalogue: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        run(dataset, names, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_policy_that_keeps_a_state_is_refused() -> None:
    with pytest.raises(InputError, match="hold needs a trial, which an image of a dataset does not have"):
        who.refuse_unsuitable(POLICIES["hold"].model_copy(update={"stateful": True}))


def test_a_wrong_name_or_dataset_is_refused(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown model 'no-model'; choose one of: .*describe.*leaner"):
        run(dataset, ["no-model"], tmp_path / "out")
    with pytest.raises(InputError, match="holds no finished dataset"):
        run(tmp_path, ["teller"], tmp_path / "out")
    with pytest.raises(InputError, match="at least one worker"):
        run(dataset, ["teller"], tmp_path / "out", workers=0)


def test_an_image_that_has_changed_is_no_image_of_the_dataset(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    _, jobs = rows_and_jobs(who.entry_of("teller"), {}, read_dataset(dataset), 1)
    item = jobs[0].items[0]
    job = Job(jobs[0].entry, (replace(item, pixels="other"),))
    assert {reply.response for reply in ModelRunner().run(job)} == {None}
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(dataset), str(copy)], check=True)
    changed = next((copy / "distorted").rglob("*.png"))
    changed.write_bytes(encode_image(np.zeros((40, 48, 3), np.uint8)))
    with pytest.raises(InputError, match="has changed since the dataset was built"):
        read_dataset(copy)


# Pace, cache, views ---------------------------------------------------------------------------------------------------


def test_the_rate_limit_is_kept_by_all_workers_together(dataset: Path, catalogue: Path) -> None:
    now = [0.0]
    asked: list[float] = []

    def sleep(duration_s: float) -> None:
        now[0] += duration_s

    entry = who.entry_of("teller").model_copy(update={"requests_per_minute": 30.0})
    _, jobs = rows_and_jobs(entry, {}, read_dataset(dataset), 4)
    runner = ModelRunner(2, clock=lambda: now[0], sleep=sleep)
    for job in jobs[:3]:
        for _ in runner.run(job):
            asked.append(now[0])
    assert len(asked) == 60
    assert now[0] == pytest.approx((len(asked) - 1) * 4.0)  # half of the 30 a minute, the other worker has the rest


def test_writers_share_a_cache(tmp_path: Path) -> None:
    file = tmp_path / "cache.sqlite"

    def write(number: int) -> None:
        with Cache(file) as cache:
            for step in range(20):
                cache.add([(f"{number}.{step}.{i}", CachedResponse(f'"{i}"', 0.5)) for i in range(5)])
                cache.add([("shared", CachedResponse(f'"{number}"', 1.0))])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Cache(file) as cache:
        keys = [f"{n}.{step}.{i}" for n in range(3) for step in range(20) for i in range(5)]
        assert set(cache.find([*keys, "nothing"])) == set(keys)
        first = cache.find(["shared"])["shared"]
        cache.add([("shared", CachedResponse('"late"', 2.0))])
        assert cache.find(["shared"])["shared"] == first
    (tmp_path / "text").write_text("no database, and longer than the header of one would be " * 20)
    with pytest.raises(InfrastructureError, match="is no cache"):
        Cache(tmp_path / "text")


def test_an_image_of_the_cell_has_its_true_calibration() -> None:
    cell = load_cell()

    def seen_by(name: str, domain: str = "simulation", perspective: str = "third_person") -> str:
        return views.camera_of(ReferenceImage(name, domain, perspective, (), ""))

    assert [seen_by(f"cell_07_{camera}") for camera in ("top", "side", "wrist")] == ["top", "side", "wrist"]
    assert seen_by("mug_side", "real") == "top"
    assert seen_by("mug", "real", "first_person") == "wrist"
    shown = [
        views.scene_of(ReferenceImage(f"cell_07_{camera}", "simulation", "", (), ""))
        for camera in ("top", "side", "far")
    ]
    assert shown == ["cell_07", "cell_07", "cell_07_far"]
    assert views.scene_of(ReferenceImage("mug_top", "real", "third_person", (), "")) == "mug_top"

    image = np.full((cell.cameras.height, cell.cameras.width, 3), 7, np.uint8)
    seen = views.observation(image, "side", ("top", "wrist"), "do it", 3)
    assert seen.views["top"].intrinsics == cell.intrinsics
    np.testing.assert_allclose(seen.views["top"].base_from_camera, cell.base_from_camera("side"))
    assert not seen.views["wrist"].color.any()
    assert (seen.gripper_open, seen.noise_seed, seen.scene) == (1.0, 3, None)
    np.testing.assert_allclose(seen.base_from_tcp[:3, 3], (0.45, 0.0, 0.30), atol=1e-3)  # as cell.yaml says
    twice = views.observation(np.zeros((480, 848, 3), np.uint8), "top", ("top",), "", 0).views["top"].intrinsics
    assert (twice.fx, twice.cx) == (2 * cell.intrinsics.fx, 423.5)


# Beyond one machine ---------------------------------------------------------------------------------------------------


def test_the_error_without_ray_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    from merton.cluster import RayEngine

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"--engine ray needs ray: .*merton\[cluster\]"):
        RayEngine(2)


def test_a_ray_cluster_with_a_worker_killed(
    dataset: Path, catalogue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two worker processes; the one that comes to `dies` first ends as by kill -9, and another takes its place."""
    pytest.importorskip("ray", reason="ray is not installed (the extra cluster)")
    from merton.cluster import RayEngine

    monkeypatch.setenv("PYTHONPATH", MODELS_PATH)
    run(dataset, ["teller", "leaner"], tmp_path / "local")
    summary = run(dataset, ["dies", "teller", "leaner"], tmp_path / "died", RayEngine(2), 2, batch=2)
    assert (summary.unanswered, (tmp_path / "dies").exists()) == (0, True)
    again = run(dataset, ["teller", "leaner"], tmp_path / "ray", cache=tmp_path / "died" / "cache.sqlite")
    assert again.requested == 0
    assert outcome(tmp_path / "ray") == outcome(tmp_path / "local")


def test_the_tables_name_models_and_corpora(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    import pyarrow.parquet

    run(dataset, ["teller"], tmp_path / "out")
    metadata = pyarrow.parquet.read_schema(tmp_path / "out" / ANNOTATIONS).metadata
    about = json.loads(metadata[b"merton"])
    assert about["models"]["teller"]["adapter"] == "annotate_models:Teller"
    file = pyarrow.parquet.ParquetFile(tmp_path / "out" / SCORES)
    corpora = json.loads(file.metadata.metadata[b"merton_cider_corpora"])
    assert re.fullmatch(r"[0-9a-f]{16}", corpora["teller"])


def test_the_answers_of_a_run_are_imported_to_the_same_scores(dataset: Path, catalogue: Path, tmp_path: Path) -> None:
    """The raw answers in the cache, too: the reader of final answers is applied to them as in the run."""
    run(dataset, ["teller", "leaner"], tmp_path / "run")
    import_answers(dataset, [tmp_path / "run" / ANNOTATIONS], tmp_path / "again")
    for name in (ANNOTATIONS, SCORES, opinion.SUBJECTS, opinion.OPINIONS):
        assert rows_of(tmp_path / "again" / name) == rows_of(tmp_path / "run" / name)
    rows = [row for row in rows_of(tmp_path / "run" / ANNOTATIONS) if row["model"] == "teller"]
    raw = [{**row, "answer": f"<think>It may be otherwise.</think>{row['answer']}"} for row in rows]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(row) + "\n" for row in raw))
    import_answers(dataset, [tmp_path / "raw.jsonl"], tmp_path / "raw")
    assert rows_of(tmp_path / "raw" / ANNOTATIONS) == rows
