"""Seeds, registry, geometry, tasks, configuration and files: the base of all other modules."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy.spatial.transform import Rotation

import merton
from merton.config import Model, load, loads, validated
from merton.errors import (
    InfrastructureError,
    InputError,
    MertonError,
    MissingDependencyError,
    UnknownNameError,
    install_line,
    needing,
    require,
    studies_line,
)
from merton.experiment.plan import ExperimentSpec
from merton.files import (
    UNFINISHED,
    claim_folder,
    refuse_filled,
    resource,
    swapped_folder,
    whole_lines,
    write_file,
    written_whole,
)
from merton.registry import Registry
from merton.seeding import derive_seed, generator
from merton.world import geometry, tasks

MINIMAL = "name: x\nagents:\n  - {id: a, vla: hold}\ntasks: [reach]\n"


def test_a_seed_depends_on_every_part_alone() -> None:
    assert derive_seed("a", "bc") != derive_seed("ab", "c")
    assert derive_seed("a", 1) == derive_seed("a", "1")
    # the first 8 bytes of sha256, big-endian, halved
    assert derive_seed("a", "b") == int(hashlib.sha256(b"a\x1fb").hexdigest()[:16], 16) >> 1
    assert generator("x").integers(1 << 30) == generator("x").integers(1 << 30)


def test_a_registry_refuses_duplicates_and_lists_choices() -> None:
    registry: Registry[int] = Registry("thing")
    registry.add("one", 1)
    with pytest.raises(MertonError, match="registered twice"):
        registry.add("one", 2)
    with pytest.raises(UnknownNameError, match="unknown thing 'two'; choose one of: one"):
        registry["two"]
    assert "two" not in registry
    assert registry.get("two") is None


TURNS = [(np.pi, 0, 0), (0, np.pi, 0), (0, 0, np.pi), (2.0, -2.0, 1.0), (0, 0, 0)]


@pytest.mark.parametrize("length_rad", [1e-300, 1e-9, 0.9e-3, 1.1e-3, 0.5, 3.1, 3.2, 9.0])
def test_rotations_equal_those_of_scipy(length_rad: float) -> None:
    rng = np.random.default_rng(3)
    for turn in (*TURNS, *rng.normal(size=(40, 3))):
        vector = np.array(turn) * length_rad
        expected = Rotation.from_rotvec(vector) * Rotation.from_rotvec(turn)
        assert np.allclose(geometry.rotation_of_vector(vector), Rotation.from_rotvec(vector).as_matrix(), atol=1e-15)
        matrix = geometry.transform(rotation=expected)
        assert np.allclose(geometry.quaternion_of(matrix), expected.as_quat(canonical=True), atol=1e-15)
        assert np.allclose(geometry.rotation_vector_of(matrix), Rotation.from_matrix(matrix[:3, :3]).as_rotvec())
        doubled = geometry.from_quaternion((0, 0, 0), 2 * expected.as_quat())
        assert np.allclose(doubled, matrix, atol=1e-15)
        by_angles = geometry.from_rpy((0, 0, 0), vector)
        assert np.allclose(by_angles[:3, :3], Rotation.from_euler("xyz", vector).as_matrix(), atol=1e-15)
    with pytest.raises(InputError, match="zeros"):
        geometry.from_quaternion((0, 0, 0), (0, 0, 0, 0))


@given(st.lists(st.floats(-3, 3), min_size=6, max_size=6))
def test_a_transform_times_its_inverse_is_the_identity(numbers: list[float]) -> None:
    matrix = geometry.transform(numbers[:3], Rotation.from_rotvec(numbers[3:]))
    assert np.allclose(matrix @ geometry.inverse(matrix), np.eye(4), atol=1e-12)
    again = geometry.from_quaternion(matrix[:3, 3], geometry.quaternion_of(matrix))
    assert np.allclose(again, matrix, atol=1e-12)
    assert np.allclose(
        Rotation.from_rotvec(geometry.rotation_vector_of(matrix)).as_matrix(), matrix[:3, :3], atol=1e-12
    )


def test_urdf_angles_turn_about_fixed_axes() -> None:
    # roll a quarter, then yaw a quarter: x stays under the roll and becomes y under the yaw
    matrix = geometry.from_rpy((1, 2, 3), (np.pi / 2, 0, np.pi / 2))
    assert np.allclose(matrix @ [1, 0, 0, 1], [1, 3, 3, 1])
    assert np.allclose(matrix @ [0, 1, 0, 1], [1, 2, 4, 1])


@pytest.mark.parametrize(
    "command",
    [
        tasks.Command("reach", "red cube"),
        tasks.Command("push", "blue cylinder", direction="left"),
        tasks.Command("pick", "green cube"),
        tasks.Command("place", "yellow cylinder", target="red mat"),
    ],
)
def test_an_instruction_is_read_back(command: tasks.Command) -> None:
    assert tasks.parse(command.instruction) == command
    assert tasks.parse("  " + command.instruction.upper() + ". ") == command


def test_an_unknown_instruction_is_answered_with_the_valid_forms() -> None:
    with pytest.raises(InputError, match="pick up the"):
        tasks.parse("make me a sandwich")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MINIMAL + "colour: red\n", r"line 5: colour: unknown key; valid keys are: name, description"),
        (MINIMAL + "level: [1]\n", r"line 5: level: unknown key; did you mean 'levels'\?"),
        (MINIMAL + "tasks: [pick]\n", r"line 5: .*tasks"),
        (
            MINIMAL + "distortions: [fog]\n",
            r"line 5: distortions, entry 1: unknown distortion 'fog'; choose one of: .*lens_blur",
        ),
        (MINIMAL + "levels: [0, 9]\n", r"line 5: levels, entry 2: must be at most 5, got 9$"),
        (
            MINIMAL + "levels: [2.5]\n",
            r"line 5: levels, entry 1: must be a whole number, got 2.5: only `merton distort` takes levels",
        ),
        (MINIMAL + "distortions: jpeg\n", r"line 5: distortions: must be a list, got the text 'jpeg'$"),
        (
            MINIMAL + "distortions:\n  - jpeg\n  - jpeg\n",
            r"line 7: distortions, entry 2: distortion 'jpeg' is listed twice$",
        ),
        (MINIMAL + "couple: vla\n", r"line 5: couple: must be 'vlm -> vla', got the text 'vla'"),
        (
            MINIMAL.replace("name: x", "name: My Experiment!"),
            r"line 1: name: must be lower-case letters, digits, _ and -, beginning with a letter or digit, at most 64, "
            r"got the text 'My Experiment!'",
        ),
        (MINIMAL + "distort: {steps: [9]}\n", r"line 5: distort.steps: there is no step 9: steps are 0 to 7"),
        (MINIMAL + "seed: '7'\n", r"line 5: seed: must be a whole number, got the text '7'"),
        (
            MINIMAL.replace("hold", "gpt"),
            r"line 3: agents, entry 1, vla: unknown vla 'gpt'; choose one of: .*hold, .*oracle",
        ),
        (
            MINIMAL.replace("vla:", "vlaa:"),
            r"line 3: agents, entry 1, vla: is missing|line 3: agents, entry 1, vlaa: unknown key",
        ),
        (MINIMAL.replace("name: x\n", ""), r"name: is missing"),
        (MINIMAL + "  bad: [\n", r"line \d+: "),
        ("a: &x 1\nb: *x\n", r"line 2: aliases and tags are not allowed"),
        ("a: !!python/object:os.system x\n", r"line 1: aliases and tags are not allowed"),
        ("- 1\n", r"must be a mapping"),
        ("x: " + "[" * 100_000, r"line 1: nested deeper than 50 levels"),
    ],
    ids=lambda value: None if len(value) < 500 else "deep",
)
def test_bad_configuration_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        loads(text, ExperimentSpec, "experiment")


class _Pair(Model):
    first: int
    second: int


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"first": 1.5, "second": 2}, "the pair: first: must be a whole number, got 1.5"),
        ({"first": 1}, "the pair: second: is missing"),
        ({}, "the pair: first: is missing (and 1 more)"),
        (
            {"first": 1, "second": 2, "frist": 3},
            "the pair: frist: unknown key; did you mean 'first'? valid keys are: f",
        ),
        (b'{"first": "1", "second": 2}', "the pair: first: must be a whole number, got the text '1'"),
        (b'{"first": ', "the pair: is not JSON: "),
    ],
)
def test_refused_data_are_named_in_one_sentence(data: object, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}") as caught:
        validated(_Pair, data, "the pair")
    assert "\n" not in str(caught.value)


def test_data_that_fit_are_returned_as_their_model() -> None:
    assert validated(_Pair, {"first": 1, "second": 2}, "the pair") == _Pair(first=1, second=2)
    assert validated(_Pair, b'{"first": 1, "second": 2}', "the pair") == _Pair(first=1, second=2)
    assert validated(TypeAdapter(tuple[int, ...]), b"[1, 2]", "the numbers") == (1, 2)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nothing\.yaml: No such file"):
        load(tmp_path / "nothing.yaml", ExperimentSpec)


@pytest.mark.parametrize(
    "file", sorted(resource("merton_bringup", "config/experiments").glob("*.yaml")), ids=lambda f: f.name
)
def test_every_experiment_of_the_package_is_valid(file: Path) -> None:
    spec = load(file, ExperimentSpec)
    assert len(list(chain.from_iterable(spec.rounds({})))) == spec.trial_count > 0


def test_references_come_first_and_the_oracle_before_others() -> None:
    spec = loads(
        "name: x\nagents:\n  - {id: h, vla: hold}\n  - {id: e, vla: oracle}\n"
        "tasks: [reach, pick]\ndistortions: [jpeg, lens_blur]\nlevels: [0, 2, 5]\nscenes: 2\n",
        ExperimentSpec,
    )
    trials = spec.trials()
    assert len(trials) == 2 * 2 * 2 * (1 + 2 * 2) == len({trial.id for trial in trials})
    kinds = [(trial.case.is_reference, trial.agent.vla) for trial in trials]
    assert kinds[:8] == [(True, "oracle")] * 4 + [(True, "hold")] * 4
    assert not any(reference for reference, _ in kinds[8:])


def test_reference_scenes_are_run_undistorted_only() -> None:
    spec = loads(
        "name: x\nagents:\n  - {id: h, vla: hold}\ntasks: [reach, pick]\ndistortions: [jpeg]\nlevels: [0, 5]\n"
        "scenes: 1\nreference_scenes: 2\n",
        ExperimentSpec,
    )
    assert {(case.task, case.seed) for case in spec.cases() if case.is_reference} == {
        (task, seed) for task in ("reach", "pick") for seed in range(3)
    }
    assert {case.seed for case in spec.cases() if not case.is_reference} == {0}


def test_a_missing_module_is_named_with_the_extra_that_brings_it() -> None:
    assert require("json", "dataset", "a test") is json
    with pytest.raises(MissingDependencyError) as caught:
        require("no_such_module.part", "dataset", "a test")
    lock = Path(merton.__file__).parents[3] / "requirements" / "lock.txt"
    assert lock.is_file(), "the command can be pasted into any shell, in any folder"
    command = [sys.executable, "-m", "pip", "install", "-c", str(lock), f"merton[dataset]=={merton.__version__}"]
    assert str(caught.value) == f"a test needs no_such_module: install it with {shlex.join(command)}"


@pytest.mark.parametrize(("extra", "folder"), [("sim", "."), ("people", "src/merton_studies")])
def test_an_extra_of_a_checkout_that_is_not_installed_comes_from_its_folder(
    extra: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: ())
    root = Path(merton.__file__).parents[3]
    pip = [sys.executable, "-m", "pip", "install", "-c", str(root / "requirements/lock.txt")]
    assert install_line(extra) == f"install it with {shlex.join([*pip, f'{root / folder}[{extra}]'])}"


def test_without_a_checkout_packages_come_from_their_wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An index has another project named merton."""
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: ())
    monkeypatch.setattr("merton.errors.__file__", str(tmp_path / "python/site-packages/merton/errors.py"))
    made = f"{merton.__version__}{{}}, which `make dist` in a checkout writes"
    assert studies_line() == f"install the wheel of merton-studies {made.format('')}"
    assert install_line("sim") == f"install the wheel of merton {made.format(' with the extra sim')}"
    assert install_line("people") == f"install the wheel of merton-studies {made.format(' with the extra people')}"


def test_a_broken_module_of_an_extra_is_named_with_its_error() -> None:
    unlinked = "libgomp.so.1: cannot open shared object file: No such file or directory"
    with pytest.raises(MissingDependencyError, match=r"the gate needs coal \(no symbol\): install it .*merton\[sim\]"):
        _imported("sim", "the gate", ImportError("no symbol", name="coal"))
    with pytest.raises(MissingDependencyError, match=r"^this system lacks libgomp\.so\.1: install libgomp1"):
        _imported("sim", "the gate", ImportError(unlinked))


def _imported(extra: str, user: str, error: ImportError) -> None:
    with needing(extra, user):
        raise error


def _interrupted(path: Path, durable: bool) -> None:
    with written_whole(path, durable) as file:
        file.write(b"ne")
        raise KeyboardInterrupt


def _swapped(folder: Path, content: bytes, after: Callable[[], object] = bool) -> None:
    with swapped_folder(folder) as draft:
        (draft / "file").write_bytes(content)
        after()


def test_a_folder_is_swapped_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / ("n" * 255)
    _swapped(folder, b"old", lambda: folder.exists() and pytest.fail("it is there too early"))
    with pytest.raises(ZeroDivisionError):
        _swapped(folder, b"ne", lambda: 1 // 0)
    assert (folder / "file").read_bytes() == b"old"
    (folder / "further").write_bytes(b"")
    _swapped(folder, b"new")
    assert [one.name for one in folder.iterdir()] == ["file"]
    assert (folder / "file").read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("which", [1, 2])
def test_a_swap_that_is_killed_loses_neither_folder(tmp_path: Path, which: int) -> None:
    """Killed as it gives the first and the second new name: both are there whole, beside each other."""
    _swapped(tmp_path / "site", b"old")
    program = f"""
import os, pathlib
from merton.files import swapped_folder
given, calls = os.rename, []
def killed(*names):
    calls.append(names)
    if len(calls) == {which}:
        os._exit(9)
    given(*names)
os.rename = killed
with swapped_folder(pathlib.Path({str(tmp_path / "site")!r})) as draft:
    (draft / "file").write_bytes(b"new")
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    assert sorted(file.read_bytes() for file in tmp_path.glob("*/file")) == [b"new", b"old"]
    _swapped(tmp_path / "site", b"newer")
    assert (tmp_path / "site/file").read_bytes() == b"newer"


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_written_whole_or_stays_as_it_was(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / ("n" * 255)
    with written_whole(path, durable) as file:
        file.write(b"old")
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt):
        _interrupted(path, durable)
    assert path.read_bytes() == b"old"
    with written_whole(path, durable) as file, written_whole(tmp_path / "other", durable) as other:
        assert len(list(tmp_path.glob(f"*{UNFINISHED}"))) == 2
        file.write(b"new")
        other.write(b"too")
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == {"n" * 255: b"new", "other": b"too"}


def test_a_file_that_cannot_be_written_is_told_in_one_sentence(tmp_path: Path) -> None:
    write_file(tmp_path / "table", b"old")
    for path, reason in ((tmp_path / "nowhere" / "table", "No such file"), (tmp_path / "table" / "x", "Not a dir")):
        with pytest.raises(InfrastructureError, match=rf"^cannot write {path}: {reason}"):
            write_file(path, b"new")
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == {"table": b"old"}


def test_the_quickstart_has_enough_trials_scenes_and_distortions() -> None:
    from merton.decision.models.base import POLICIES
    from merton.perception.distortion import DISTORTIONS

    spec = load(resource("merton_bringup", "config/experiments/quickstart.yaml"), ExperimentSpec)
    assert 150 <= len(spec.trials()) <= 460, "the demo may take four minutes"
    assert spec.levels == (0, 5), "the same in every scene, or curves by level compare scenes"
    assert len({case.scene for case in spec.cases()}) >= 12, "an interval counts scenes"
    assert {"test-press", "test-twist"} <= set(spec.tasks), "the precise ones: a button, a knob"
    assert {"oracle", "hold"} < {agent.vla for agent in spec.agents}, "the ceiling and the floor"
    verbs = {task.removeprefix("test-") for task in spec.tasks}
    learned = [entry for agent in spec.agents if "verbs" in (entry := POLICIES[agent.vla]).settings]
    assert len(learned) >= 2
    assert all(verbs <= set(entry.settings["verbs"]) for entry in learned), "they claim all of them"
    assert len({DISTORTIONS[name].category for name in spec.distortions}) >= 6


def test_a_folder_belongs_to_the_work_that_claimed_it(tmp_path: Path) -> None:
    work, settings = tmp_path / "settings.json", {"seed": 1, "levels": (1, 2)}
    claim_folder(work, settings, "a dataset")
    before = work.read_bytes()
    (tmp_path / "piece").write_text("made")
    claim_folder(work, settings, "a dataset")
    assert work.read_bytes() == before
    with pytest.raises(InputError, match="holds a dataset with other seed and levels; choose another folder"):
        claim_folder(work, {"seed": 2, "levels": (1,)}, "a dataset")
    work.unlink()
    with pytest.raises(InputError, match="is neither empty nor a dataset; choose another folder"):
        claim_folder(work, settings, "a dataset")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["piece"], "a refusal leaves nothing behind"


def test_only_an_empty_folder_or_none_is_filled_anew(tmp_path: Path) -> None:
    refuse_filled(tmp_path / "new")
    refuse_filled(tmp_path)
    (tmp_path / "mine").write_text("mine")
    for taken in (tmp_path, tmp_path / "mine"):
        with pytest.raises(InputError, match="is not an empty folder; choose another one"):
            refuse_filled(taken)


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    assert whole_lines(file) == []
    file.write_bytes(b"one\ntwo\nhal")
    assert whole_lines(file) == [b"one", b"two"]
    assert file.read_bytes() == b"one\ntwo\n"
    with pytest.raises(InfrastructureError, match=r"cannot read .*: Is a directory"):
        whole_lines(tmp_path)
