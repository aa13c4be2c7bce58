"""The gate on image quality: its table, the monitor, the designs, the promise and the command (wing iqa)."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from merton.cli.main import app
from merton.errors import InfrastructureError, InputError, InvalidActionError
from merton.perception.distortion import DISTORTIONS
from merton.perception.images import encode_image
from merton.perception.quality import measure
from merton.results.records import Outcome, TestCase, TrialRecord
from merton.results.store import ResultStore
from merton.world.action import ActionChunk
from merton.world.observation import CameraView, Intrinsics
from merton_studies.iqa import gate as gate_module
from merton_studies.iqa.disagreement import UNDECIDED_M, Views, disagreement, jittered, spread
from merton_studies.iqa.gate import MONITOR, NO_GATE, PERFECT, events, gates, study
from merton_studies.iqa.gate_groups import admitted_by_group
from merton_studies.iqa.gate_page import fragment
from merton_studies.iqa.gate_promise import promises
from merton_studies.iqa.gate_run import rows_of_run
from merton_studies.iqa.gate_study import as_json, gate_study
from merton_studies.iqa.gate_table import SAMPLE, GateTable, measured, read_gate_table, write_gate_table
from merton_studies.iqa.monitor_model import fit, inputs_of
from merton_studies.iqa.watched_trials import LEVELS, SUBJECTS, design
from runs import small_run


def table(scenes: int = 60, each: int = 4, seed: int = 0) -> GateTable:
    """Trials whose chance of success falls with the disagreement; the blur tells nothing."""
    rng = np.random.default_rng(seed)
    n = scenes * each
    spread_m = np.exp(rng.normal(-8.0, 1.5, n))
    failed = rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * (np.log(spread_m) + 6.5)))
    level = rng.integers(0, 6, n)
    types = np.array(list(DISTORTIONS))[rng.integers(0, 30, n)]
    return GateTable(
        trial=np.array([f"t{number}" for number in range(n)]),
        subject=np.array(["glance", "gist"])[np.arange(n) % 2],
        scene=np.array([f"test.{number // each}" for number in range(n)]),
        distortion=np.where(level == 0, "reference", types),
        level=level,
        outcome=np.where(failed, np.where(rng.random(n) < 0.2, "emergency_stop", "failure"), "success"),
        undistorted=np.where(failed & (level > 0), np.where(rng.random(n) < 0.7, "success", "failure"), ""),
        values={
            "psnr": 30.0 - 3.0 * failed + rng.normal(0, 1, n),
            "blur_effect": rng.uniform(0.2, 0.6, n),
            "luminance": rng.uniform(0.4, 0.7, n),
            "disagreement_m": spread_m,
            "disagreement_rad": np.full(n, 0.01),
        },
    )


def rows_of(trials: GateTable) -> list[dict[str, object]]:
    words = ("trial", "subject", "scene", "distortion", "level", "outcome", "undistorted")
    return [
        {
            **{name: getattr(trials, name)[at].item() for name in words},
            **{name: float(values[at]) for name, values in trials.values.items()},
        }
        for at in range(len(trials.trial))
    ]


def test_a_table_is_read_back(tmp_path: Path) -> None:
    trials = table(8)
    write_gate_table(tmp_path / "trials.csv", rows_of(trials))
    again = read_gate_table(tmp_path / "trials.csv")
    for name in ("trial", "subject", "scene", "distortion", "level", "outcome", "undistorted"):
        assert getattr(again, name).tolist() == getattr(trials, name).tolist()
    assert list(again.values) == list(trials.values)
    for name, values in trials.values.items():
        assert again.values[name] == pytest.approx(values, rel=1e-4)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("blur_effect", "nan", "line 3: blur_effect is nothing; it must be a number"),
        ("psnr", "", "line 3: psnr is nothing; it must be a number"),
        ("outcome", "abstained", "line 3: outcome 'abstained': choose from: success, failure, emergency_stop"),
        ("trial", "t0", "line 3: trial 't0' stands twice"),
        ("level", "7", "line 3: level is '7'; it must be a number from 0 to 5"),
        ("scene", "", "line 3: scene is empty or no text; write a name"),
        ("sharpness", "1", "unknown column 'sharpness'"),
    ],
)
def test_mistakes_in_a_table_are_told_with_their_line(tmp_path: Path, column: str, value: str, sentence: str) -> None:
    rows = rows_of(table(8))
    rows = [row | ({column: 1.0} if column not in row else {}) for row in rows]
    rows[1][column] = value
    write_gate_table(tmp_path / "trials.csv", rows)
    with pytest.raises(InputError) as caught:
        read_gate_table(tmp_path / "trials.csv")
    assert sentence in str(caught.value)


def test_a_table_without_values_or_trials_is_refused(tmp_path: Path) -> None:
    words = [{name: row[name] for name in list(row)[:7]} for row in rows_of(table(8))]
    write_gate_table(tmp_path / "words.csv", words)
    with pytest.raises(InputError, match="nothing to gate on"):
        read_gate_table(tmp_path / "words.csv")
    (tmp_path / "none.csv").write_text(",".join(words[0]) + ",psnr\n")
    with pytest.raises(InputError, match="has no trials"):
        read_gate_table(tmp_path / "none.csv")


def test_values_of_several_cameras_are_those_of_the_worst() -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 256, (48, 64, 3), np.uint8)
    slight, strong = ((reference // step * step).astype(np.uint8) for step in (8, 64))
    found = measured([(reference, slight), (reference, strong)], ["psnr", "blur_effect"])
    assert found["psnr"] == measure("psnr", strong, reference)
    assert found["blur_effect"] == max(measure("blur_effect", slight), measure("blur_effect", strong))
    assert measured([(reference, reference)], ["psnr"])["psnr"] == 100.0


def view(seed: int = 0) -> CameraView:
    color = np.random.default_rng(seed).integers(0, 200, (20, 30, 3), np.uint8)
    return CameraView("top", color, None, Intrinsics(30, 20, 25.0, 25.0, 15.0, 10.0), np.eye(4))


def test_a_shifted_view_shows_every_point_where_its_intrinsics_say() -> None:
    seen = {"top": view()}
    right, down, brighter = (shown["top"] for shown in jittered(seen))
    point = np.array([0.1, 0.05, 1.0])
    for shown in (right, down, brighter):
        u, v = seen["top"].intrinsics.project(point).round().astype(int)
        moved_u, moved_v = shown.intrinsics.project(point).round().astype(int)
        darker = seen["top"].color[v, u].astype(float)
        assert shown.color[moved_v, moved_u] == pytest.approx(darker * (1.04 if shown is brighter else 1.0), abs=0.5)
    assert (right.intrinsics.cx, down.intrinsics.cy) == (17.0, 12.0)


def chunk(x_m: float, turn_rad: float = 0.0) -> ActionChunk:
    return ActionChunk(np.array([[x_m, 0, 0, 0, 0, turn_rad, 1.0]]), 0.1)


def test_a_spread_by_hand() -> None:
    assert spread([chunk(0.1), chunk(0.1)]).position_m == pytest.approx(0.0, abs=1e-12)
    found = spread([chunk(0.0), chunk(0.0, 0.5), chunk(0.0, -0.25), chunk(0.4)])
    assert found.position_m == pytest.approx(math.sqrt((3 * 0.1**2 + 0.3**2) / 4), abs=1e-12)
    assert found.rotation_rad == pytest.approx(0.75, abs=1e-9)


def test_a_policy_without_a_decision_disagrees_most() -> None:
    def decide(views: Views) -> ActionChunk:
        if views["top"].intrinsics.cx != 15.0:
            raise InvalidActionError("nothing is seen")
        return chunk(0.1)

    assert disagreement(decide, {"top": view()}).position_m == UNDECIDED_M
    assert disagreement(lambda views: chunk(0.1), {"top": view()}).position_m == pytest.approx(0.0, abs=1e-12)


def test_a_monitor_recovers_planted_odds() -> None:
    trials = table(1500)
    model = fit(["disagreement_m", "blur_effect"], trials.values, trials.failed)
    log_odds_per_factor_e = model.weights[0] / model.scale[0]
    assert log_odds_per_factor_e == pytest.approx(-1.5, abs=0.15)
    assert abs(model.weights[1]) < 0.15
    assert model.chance(trials.values).mean() == pytest.approx(1.0 - trials.failed.mean(), abs=0.01)
    assert inputs_of(tuple(trials.values)) == ("blur_effect", "luminance", "disagreement_m", "disagreement_rad")
    assert inputs_of(tuple(trials.values), images_only=True) == ("blur_effect", "luminance")
    with pytest.raises(InputError, match="a monitor needs a value"):
        fit([], trials.values, trials.failed)
    with pytest.raises(InputError, match="all 6000 trials succeed"):
        fit(["blur_effect"], trials.values, np.zeros(6000, bool))


def test_gates_are_ordered_and_no_gate_has_the_failure_rate() -> None:
    trials = table()
    found = study(trials, "scenes")
    rows = {row.gate.name: row for row in found.rows}
    assert set(rows) == {MONITOR, "monitor, images alone", "disagreement", "psnr", "blur_effect", NO_GATE, PERFECT}
    assert rows[NO_GATE].area.value == pytest.approx(trials.failed.mean())
    assert rows[NO_GATE].gain.value == 0.0
    assert found.rows[0].gate.name == PERFECT
    assert rows[MONITOR].gain.interval.high < 0.0
    assert rows[MONITOR].avoided["failure"][0.7].interval.low > 0.3
    assert found.events == {
        "failure": trials.failed.sum(), "stop": trials.stopped.sum(), "lost": events(trials)["lost"].sum()
    }  # fmt: skip
    named = replace(trials, values=trials.values | {"merton-nr": trials.values["psnr"] / 10.0})
    assert "merton-nr" in gates(named)[0].names
    assert "merton-nr" not in gates(named, of_any_type=False)[0].names
    distorted = study(trials, "types")
    assert distorted.trials == (trials.level > 0).sum()


def test_held_out_trials_are_not_seen_by_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    trials = table()
    seen: list[tuple[set[str], set[str]]] = []
    whole = gate_module.scores

    def recorded(gate: gate_module.Gate, all_trials: GateTable, trained, event):  # type: ignore[no-untyped-def]
        found = whole(gate, all_trials, trained, event)
        if not gate.sign:
            seen.append((set(trials.scene[trained]), set(trials.distortion[trained]) - {"reference"}))
            judged = ~trained
            assert judged.any()
        return found

    monkeypatch.setattr(gate_module, "scores", recorded)
    monitor = gates(trials)[0]
    gate_module.held_out_scores(monitor, trials, "types", trials.failed)
    parts = {frozenset(types) for _, types in seen}
    assert all(len(types) <= 25 for types in parts - {frozenset(DISTORTIONS)})
    assert len(parts) == gate_module.TYPE_FOLDS + 1  # the undistorted trials are judged with all types
    assert all(len(scenes) == 54 for scenes, _ in seen)


def test_a_value_that_only_names_the_scene_is_worth_nothing_on_others() -> None:
    """Failures by scene, and a value that tells the scene: fitted and judged on the same scenes it would be perfect."""
    trials = table()
    scene = np.unique(trials.scene, return_inverse=True)[1]
    bad = np.random.default_rng(5).random(60) < 0.3
    names = trials.values | {"luminance": scene / 60.0, "blur_effect": bad[scene] * 1e-9 + scene / 60.0}
    planted = replace(
        trials,
        outcome=np.where(bad[scene], "failure", "success"),
        values={name: names[name] for name in ("luminance", "blur_effect")},
    )
    found = {row.gate.name: row for row in study(planted, "scenes").rows}
    assert found["monitor, images alone"].gain.interval.high > 0.0


def test_a_study_is_reproducible_plain_and_shown(tmp_path: Path) -> None:
    trials = table(80)
    found = gate_study(trials, 0.2, resplits=3)
    numbers = json.dumps(as_json(found), allow_nan=False)
    assert numbers == json.dumps(as_json(gate_study(trials, 0.2, resplits=3)), allow_nan=False)
    assert [design.name for design in found.designs] == ["scenes", "types", "subjects"]
    assert {item.alpha for item in found.promises} == {0.05, 0.1, 0.15, 0.2, 0.25}
    assert {item.resplits for item in found.kept} == {3}
    setting = found.setting or found.nearest
    assert setting is not None
    assert setting.metric == "blur_effect"
    assert setting.lines[1].startswith("min_image_quality: ")
    page = fragment(found)
    assert "knows the outcome" in page
    assert page.count("<svg") >= 3
    with pytest.raises(InputError, match="at least 20 trials in 5 scenes, got 12 in 3"):
        gate_study(table(3), 0.1)
    with pytest.raises(InputError, match="all 80 trials succeed"):
        gate_study(replace(table(20), outcome=np.full(80, "success")), 0.1)


def test_the_design_has_every_type_as_often_and_all_levels() -> None:
    cases = [case.trial.case for case in design(60)]
    assert len(cases) == 60 * len(SUBJECTS)
    assert len({case.scene for case in cases}) == 60
    assert min(case.seed for case in cases) >= 50
    counts = np.bincount([case.level for case in cases], minlength=LEVELS)
    assert counts.min() > 30  # 50 expected
    types = [case.distortion for case in cases if case.level]
    assert set(types) == set(DISTORTIONS)
    assert max(types.count(name) for name in DISTORTIONS) <= 11  # in ten rounds, two of them cut


def test_the_trials_that_come_with_merton() -> None:
    """Origin of the shares: docs/studies/quality.md, where the command's output for alpha .2 stands."""
    trials = read_gate_table(SAMPLE)
    (mixed,) = promises(gates(trials)[0], trials, "failure", trials.failed, [0.2])
    rows = {row.name: row for row in admitted_by_group(mixed, trials, trials.failed, 0)}
    shares = {name: (round(100 * rows[name].failing), rows[name].trials) for name in ("glance-twice", "test-twist")}
    assert shares == {"glance-twice": (25, 114), "test-twist": (35, 55)}
    assert SAMPLE.stat().st_size <= 300_000
    assert len(trials.trial) >= 600
    assert set(trials.subject) == set(SUBJECTS)
    assert {"failure", "lost", "stop"} == set(events(trials))


EXPERIMENT = """
name: gated
agents:
  - {id: glance, vlm: describe, vla: glance}
  - {id: hold, vlm: describe, vla: hold}
tasks: [test-pick]
distortions: [jpeg]
levels: [0, 3]
scenes: 2
"""


def record(agent: str, seed: int, level: int, outcome: Outcome) -> TrialRecord:
    return TrialRecord("gated", agent, TestCase("test-pick", seed, "jpeg" if level else "reference", level), outcome)


def test_a_run_becomes_a_table(tmp_path: Path) -> None:
    run = small_run(tmp_path, "gated", EXPERIMENT)
    trials = [
        record("glance", 0, 0, Outcome.SUCCESS),
        record("glance", 0, 3, Outcome.FAILURE),
        record("glance", 1, 0, Outcome.FAILURE),
        record("glance", 1, 3, Outcome.ABSTAINED),
        record("hold", 0, 3, Outcome.FAILURE),  # looks at nothing
        record("glance", 4, 3, Outcome.FAILURE),  # without pictures
    ]
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    with ResultStore(run.database) as store:
        run.register(store)
        for trial in trials:
            store.record(trial)
            folder = run.path / "trials" / trial.id
            folder.mkdir(parents=True)
            for side in ("reference", "distorted") if trial.case.seed < 4 else ():
                (folder / f"00_top_{side}.jpg").write_bytes(encode_image(image, ".jpg"))
    moved: list[tuple[int, int]] = []
    rows = rows_of_run(run, ["psnr", "blur_effect"], 1, lambda done, total: moved.append((done, total)))
    assert [(row["trial"], row["scene"], row["outcome"], row["undistorted"]) for row in rows] == [
        ("glance.test-pick.0.jpeg.3", "test.0", "failure", "success"),
        ("glance.test-pick.0.reference.0", "test.0", "success", ""),
        ("glance.test-pick.1.reference.0", "test.1", "failure", ""),
    ]
    assert rows[0]["psnr"] == 100.0
    assert moved[-1] == (3, 3)
    write_gate_table(tmp_path / "trials.csv", rows)
    assert len(read_gate_table(tmp_path / "trials.csv").trial) == 3
    with pytest.raises(InputError, match="there is no result store"):
        rows_of_run(small_run(tmp_path, "empty", EXPERIMENT), ["psnr"], 1)


def test_the_command_says_what_can_be_promised_and_what_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("merton_studies.iqa.gate_study.gate_study", partial(gate_study, resplits=2))
    write_gate_table(tmp_path / "trials.csv", rows_of(table(60)))

    def command(*arguments: str) -> str:
        line = ["iqa", "gate", *arguments, "--out", str(tmp_path / "out")]
        return CliRunner().invoke(app, line, catch_exceptions=False).output

    said = command("--trials", str(tmp_path / "trials.csv"), "--alpha", "0.3", "--by", "policy")
    assert "That says nothing about each of these policies, tasks or types alone" in said
    assert "    glance: " in said
    assert "Each policy by itself" in said
    assert "not kept in" in said
    assert "A threshold for each policy" in (tmp_path / "out" / "gate.html").read_text()
    with pytest.raises(InputError, match="unknown --by 'type'; choose one of: policy, task"):
        command("--by", "type")
    assert "Held-out types" in said
    assert "quality_metric: blur_effect" in said
    assert json.loads((tmp_path / "out" / "gate.json").read_text())["alpha"] == 0.3
    assert (tmp_path / "out" / "gate.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(InputError, match="--alpha is a share above 0 and below 1, got 10"):
        command("--alpha", "10")
    with pytest.raises(InputError, match="there is no run"):
        command("no-such-run")
    (tmp_path / "out" / "gate.json").unlink()
    (tmp_path / "out" / "gate.json").mkdir()
    with pytest.raises(InfrastructureError, match=r"^cannot write .*gate\.json: Is a directory$"):
        command("--trials", str(tmp_path / "trials.csv"))
    with pytest.raises(InfrastructureError, match=r"^cannot write .*trials\.csv: No such file or directory$"):
        write_gate_table(tmp_path / "nowhere" / "trials.csv", rows_of(table(8)))
