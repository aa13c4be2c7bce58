"""What grows with the number of trials: the laws behind the table of growth in docs/reference/performance.md."""

from __future__ import annotations

import hashlib
import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_record

from merton.experiment.plan import Trial
from merton.experiment.run import RunDirectory
from merton.leaderboard.site import run_trials
from merton.leaderboard.site.record_extras import Earlier
from merton.leaderboard.snapshot import store as snapshots
from merton.leaderboard.snapshot.inputs import Inputs, _lines
from merton.results import export
from merton.results.records import ForeignScore, TrialRecord
from merton.results.store import ResultStore
from merton.statistics import clustered
from merton.study import execution, execution_page, execution_study
from merton_studies.annotate.cache import Cache, CachedResponse

SCENES = 6
SIZE = SCENES * synthetic_record.TRIALS_A_SCENE


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """2,976 trials."""
    return synthetic_record.make_run(tmp_path_factory.mktemp("growth"), SCENES, with_references=False)


@pytest.fixture(scope="module")
def records(run: RunDirectory) -> list[TrialRecord]:
    """All of them."""
    with ResultStore(run.database, read_only=True) as store:
        return store.records()


def peak(work: Callable[[], Any]) -> int:
    """Bytes that the work allocates at its peak beyond those before it."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_a_record_of_a_trial_costs_less_than_a_kilobyte(run: RunDirectory) -> None:
    """Trials of one case share it, and rows are not kept beside the records made of them."""
    with ResultStore(run.database, read_only=True) as store:
        kept: list[TrialRecord] = []
        assert peak(lambda: kept.extend(store.records())) < 900 * SIZE
    assert len(kept) == SIZE
    assert len({id(record.case) for record in kept}) == SIZE // len(synthetic_record.SKILLS)


def test_the_trials_of_some_cases_are_read_without_those_of_others(run: RunDirectory) -> None:
    with ResultStore(run.database, read_only=True) as store:
        every = store.records()
        wanted = {every[0].case.id, every[-1].case.id}
        some: list[TrialRecord] = []
        assert peak(lambda: some.extend(store.records(cases=wanted))) < 100 * SIZE
        assert some == [record for record in every if record.case.id in wanted]
        assert store.records(agent="servo-2") == [record for record in every if record.agent == "servo-2"]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_an_export_never_holds_the_record(
    run: RunDirectory, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are hashed and written as they are read."""
    monkeypatch.setattr(export, "ROWS_AT_ONCE", 100)
    with ResultStore(run.database, read_only=True) as store:
        file = tmp_path / f"trials.{ending}"
        assert peak(lambda: export.export(store, file)) < 250 * SIZE
    assert file.stat().st_size > 150 * SIZE


def test_a_site_keeps_the_trials_of_cases_that_it_shows(run: RunDirectory, records: list[TrialRecord]) -> None:
    shown = {records[0].case.id}
    trials = run_trials.RunTrials([run.path], shown)
    assert {record.case.id for found in trials._trials.values() for _, record in found} == shown
    found = trials.of(records[0].case.id)
    assert found is not None
    assert len(found.trials) == len(synthetic_record.SKILLS)


def test_of_earlier_snapshots_no_match_is_kept(records: list[TrialRecord]) -> None:
    snapshot = snapshots.of_trials(records[:200])
    kept = Earlier.of("2026-01-01", snapshot)
    assert (kept.cases, kept.matches) == (len(snapshot.cases), len(snapshot.matches))
    assert kept.matches > 0
    assert (kept.snapshot.cases, kept.snapshot.matches, kept.snapshot.boards) == ((), (), ())
    assert kept.snapshot.agents == snapshot.agents


def test_the_hash_of_inputs_is_that_of_all_lines_sorted(records: list[TrialRecord]) -> None:
    """Agents are sorted apart; names whose order could differ by what follows them are among them."""
    names = ["a", "a b", 'a"', "a!", "ä", "b", "A", "a\\"]
    trials = [replace(record, agent=names[place % len(names)]) for place, record in enumerate(records[:80])]
    scores = [ForeignScore("s", name, case, 0.5) for case in ("x", "y") for name in names]
    lines = [*_lines("trial", trials), *_lines("score", scores), *_lines("submitted", scores[:3])]
    whole = hashlib.sha256("".join(f"{line}\n" for line in sorted(lines)).encode()).hexdigest()
    assert Inputs(trials, scores, submitted=scores[:3]).sha256() == whole


def test_trials_are_selected_without_comparing_any_two(
    records: list[TrialRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every trial whose reference run failed was once searched for in a list of all of them."""
    compared = 0

    def equal(one: TrialRecord, other: object) -> bool:
        nonlocal compared
        compared += 1
        return one is other

    monkeypatch.setattr(TrialRecord, "__eq__", equal)
    found = execution.select(records)
    assert found.excluded.failed_reference_trials > 0
    assert compared == 0


def test_correlations_over_trials_are_those_of_each_pair_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In less than a number for each trial and draw."""
    monkeypatch.setattr(clustered, "_CHUNK", 5000)
    rng = np.random.default_rng(3)
    scene = rng.integers(0, 40, 2000)
    columns = {name: rng.integers(0, 9, 2000) / 8.0 for name in ("a", "b", "c")}
    columns["c"][rng.random(2000) < 0.2] = np.nan
    pairs = [("a", "b"), ("a", "c"), ("c", "b")]
    times = clustered.scene_draws(0, np.arange(40).astype(str))[:200]
    found: dict[tuple[str, str], Any] = {}
    used = peak(lambda: found.update(clustered.pair_correlations(columns, pairs, times, scene)))
    assert used < times[:, scene].nbytes / 2
    for one, other in pairs:
        expected = clustered.row_correlations(columns[one][None], columns[other][None], times[:, scene])
        np.testing.assert_array_equal(found[one, other], expected)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """At most 1,000 trials in a correlation over single trials, of 100 draws and permutations."""
    for module in (execution, execution_page):
        monkeypatch.setattr(module, "MOST_TRIALS", 1000)
    monkeypatch.setattr(clustered, "DRAWS", 100)
    monkeypatch.setattr(clustered, "PERMUTATIONS", 100)
    execution_page._environment.cache_clear()
    yield 1000
    execution_page._environment.cache_clear()


def test_of_many_trials_those_of_drawn_scenes_are_compared_and_the_page_says_so(
    run: RunDirectory, records: list[TrialRecord], few: int
) -> None:
    trials = execution.select(records, declared=("oracle", "hold"))
    assert len(trials.id) > few
    drawn = trials.compared
    assert 500 < len(drawn.id) <= few
    for scene in set(drawn.scene.tolist()):
        assert (drawn.scene == scene).sum() == (trials.scene == scene).sum()
    study = execution_study.execution_study(run.path, records)
    assert study is not None
    sizes = {row.unit: row.n for row in study.coefficients}
    assert sizes["trial"] == len(drawn.id)
    assert {row.trials for row in study.coefficients if row.unit == "type"} == {len(trials.id)}
    assert "Single trials are compared in scenes drawn at random, with at most 1000" in execution_page.fragment(study)
    few_records = [record for record in records if record.case.seed < 1]
    small = execution_study.execution_study(run.path, few_records)
    assert small is not None
    assert "drawn at random, with at most" not in execution_page.fragment(small)


def test_a_run_of_many_scenes_is_planned_and_resumed_by_its_ids(run: RunDirectory) -> None:
    """The reference runs left no files here, so they alone would be run again."""
    with ResultStore(run.database, read_only=True) as store:
        done = store.successes(run.id)
    finished = run.finished(done)
    left: list[Trial] = [trial for group in run.spec.rounds(done) for trial in group if trial.id not in finished]
    assert len(done) == SIZE
    assert all(trial.case.is_reference for trial in left)
    assert len(left) == SCENES * len(synthetic_record.SKILLS) * len(synthetic_record.SCENES_OF)


def test_the_record_of_the_benchmark_is_plausible(records: list[TrialRecord]) -> None:
    success = {
        agent: np.mean([bool(r.success) for r in records if r.agent == agent]) for agent in synthetic_record.SKILLS
    }
    assert success["hold"] < 0.02 < success["servo-0"] < success["servo-5"] < success["oracle"]
    assert json.dumps([vars(records[0])], default=vars)


def test_the_cache_is_read_in_the_order_of_its_file(tmp_path: Path) -> None:
    """Keys are hashes: in any other order every query would read pages from all over the file."""
    keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(1200)]
    with Cache(tmp_path / "cache.sqlite") as cache:
        cache.add((key, CachedResponse("{}", 0.1)) for key in keys)
        queries: list[str] = []
        cache._connection.set_trace_callback(queries.append)
        assert cache.find(keys).keys() == set(keys)
    assert len(queries) == 3
    assert [key for query in queries for key in re.findall("[0-9a-f]{64}", query)] == sorted(keys)
