"""Conventions as data: their units by numbers worked out by hand, a lab's own file, an exported data set, mistakes."""

from __future__ import annotations

import json
from itertools import pairwise
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from merton.cli.main import app
from merton.config import loads
from merton.decision.models.arms import arm_named, arm_names
from merton.decision.models.base import Policies, PolicyEntry, example_observation
from merton.decision.models.convention_entry import ConventionEntry, of_dataset
from merton.decision.models.conventions import CONVENTIONS, convention_of
from merton.errors import InputError, UnknownNameError
from merton.execution.kinematics import ROBOTS
from merton.models.catalogue import VARIABLE, Catalogue
from merton.world.arms import ARMS
from merton.world.geometry import transform
from merton.world.observation import Observation

GRIPPER = {"closed": 0, "open": 1}


def made(**fields: Any) -> Any:
    return convention_of(ConventionEntry(**{"name": "ours", "rate_hz": 10, "gripper": GRIPPER, **fields}))


def observed() -> Observation:
    return example_observation("reach", ())


# Units ----------------------------------------------------------------------------------------------------------------


def test_degrees_and_millimetres_of_opening() -> None:
    """Joint 1 from 0 to 90 degrees swings the hand from x to y; 85 mm is open, and 42.5 mm half open."""
    ours = made(
        joints={"arm": "UR5e", "are": "absolute", "unit": {"raw": 180, "rad": pi}}, gripper={"closed": 0, "open": 85}
    )
    joints = np.array([0.0, -90.0, 90.0, -90.0, -90.0, 0.0])
    chunk = ours.chunk([[90.0, *joints[1:], 42.5]], state=[*joints, 85.0])
    x, y = arm_named("UR5e").forward(np.radians(joints))[:2, 3]
    assert chunk.deltas[0] == pytest.approx([-y - x, x - y, 0.0, 0.0, 0.0, pi / 2, 0.5])
    sent = ours.joints_of(observed())
    assert sent == pytest.approx([*np.degrees(observed().joints_rad), 85.0])
    assert ours.rest[:6] == pytest.approx(np.degrees(arm_named("UR5e").rest_rad))


def test_changes_are_added_up_and_clipped_if_asked() -> None:
    """Without a clip 2 is twice the unit; the state is in radians all the same."""
    for clip, moved in ((False, 0.2), (True, 0.1)):
        ours = made(joints={"arm": "UR5", "are": "changes", "unit": {"rad": 0.1, "clip": clip}})
        state = ours.joints_of(observed())
        chunk = ours.chunk([[2.0, 0, 0, 0, 0, 0, 1.0]] * 2, state=state)
        assert chunk.deltas[:, 5] == pytest.approx([moved, moved])


@pytest.mark.parametrize("arm", ARMS)
def test_joints_of_each_arm_of_a_cell_lead_its_tool(arm: str) -> None:
    """By the kinematics of `merton.execution`, which are written apart: from pose to pose of a tool of 0.235 m."""
    ours = made(joints={"arm": arm, "are": "absolute", "tool_m": 0.235})
    rows = ROBOTS[arm].forward(np.random.default_rng(0).uniform(-1, 1, (5, 6))) @ transform((0, 0, 0.235))
    joints = np.random.default_rng(0).uniform(-1, 1, (5, 6))
    chunk = ours.chunk(np.column_stack([joints[1:], np.ones(4)]), state=[*joints[0], 1.0])
    assert chunk.deltas[:, :3] == pytest.approx(np.diff(rows[:, :3, 3], axis=0), abs=1e-9)
    turns = [after[:3, :3] @ before[:3, :3].T for before, after in pairwise(rows)]
    assert chunk.deltas[:, 3:6] == pytest.approx(Rotation.from_matrix(turns).as_rotvec(), abs=1e-9)


def test_a_delta_in_the_tools_frame_stays_in_it() -> None:
    ours = made(pose={"frame": "tcp", "rotation": {"form": "rotation_vector"}})
    chunk = ours.chunk([0.01, 0, 0, 0, 0, 0.2, 0.0])
    assert (chunk.frame, chunk.step_s) == ("tcp", 0.1)
    assert chunk.deltas[0] == pytest.approx([0.01, 0, 0, 0, 0, 0.2, 0.0])


def test_a_gripper_of_two_states_counts_from_either_end() -> None:
    """Open is below 0.3 where 0 is open; the number itself is closed."""
    ours = made(pose={"rotation": {"form": "rotation_vector"}}, gripper={"closed": 1, "open": 0, "open_beyond": 0.3})
    rows = np.zeros((3, 7))
    rows[:, 6] = [0.29, 0.3, 0.9]
    assert ours.chunk(rows).deltas[:, 6].tolist() == [1.0, 0.0, 0.0]


def test_a_meaning_is_made_of_the_fields() -> None:
    ours = made(joints={"arm": "UR10e", "are": "absolute", "unit": {"raw": 180, "rad": pi}})
    assert ours.meaning == "absolute joint angles of a UR10e [180 is 3.14159 rad], gripper 0 closed 1 open; 10 Hz"
    hand = made(pose={"translation": {"m": 0.05, "clip": True}, "rotation": {"form": "roll_pitch_yaw"}})
    assert hand.meaning == (
        "delta x y z [±1 is 0.05 m], roll pitch yaw [rad] in base_link, gripper 0 closed 1 open; 10 Hz"
    )


def test_every_arm_that_can_be_named_is_there() -> None:
    assert set(ARMS) < set(arm_names())
    assert [arm_named(name).name for name in arm_names()] == list(arm_names())
    with pytest.raises(UnknownNameError, match="Franka Panda"):
        arm_named("Sawyer")


# Files ----------------------------------------------------------------------------------------------------------------

LABS = """
convention:
  - name: our_arm
    rate_hz: 15
    joints: {arm: UR10e, are: absolute}
    gripper: {closed: 255, open: 0}
vla:
  - name: ours
    description: "a policy of our own"
    adapter: openpi
    settings: {dialect: ur5, url: "ws://127.0.0.1:9", patience: {deadline_s: 0.1, attempts: 1}}
    cameras: [top]
    state: joints
    convention: our_arm
"""


@pytest.fixture
def labs_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that makes a text the lab's catalogue; afterwards Merton's own are read anew."""

    def write(text: str) -> Path:
        file = tmp_path / "lab.yaml"
        file.write_text(text)
        monkeypatch.setenv(VARIABLE, str(file))
        return file

    yield write
    monkeypatch.delenv(VARIABLE, raising=False)
    CONVENTIONS.read()


def test_a_labs_convention_goes_into_the_entries_that_name_it(labs_file: Any) -> None:
    """So a run records its numbers, and a worker that has no such file converts by them."""
    file = labs_file(LABS)
    entry = Policies()["ours"]
    assert isinstance(entry.convention, ConventionEntry)
    assert CONVENTIONS.file_of("our_arm") == file.absolute()
    assert CONVENTIONS.file_of("bridge") is None
    recorded = json.dumps(entry.model_dump(mode="json"))
    again = PolicyEntry.model_validate_json(recorded, strict=True)
    assert again == entry
    assert again.means is not None
    assert again.means.arm is not None
    assert again.means.arm.name == "UR10e"
    assert again.means.joints_of(observed())[6] == 0.0, "open is 0 for this gripper"
    assert Policies()["pi0-base"].convention == "pi0_base", "one of Merton's own stays a name"


def test_the_command_shows_a_labs_convention(labs_file: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = labs_file(LABS)
    monkeypatch.setattr("merton.decision.models.base.POLICIES", Policies())
    run = CliRunner()
    listed = run.invoke(app, ["model", "list", "ours"])
    assert f"convention our_arm is from {file}" in listed.stderr
    shown = run.invoke(app, ["model", "show", "our_arm"]).stdout
    assert loads(shown, Catalogue("convention", ConventionEntry).file_model)
    assert "UR10e" in shown
    assert "our_arm" in run.invoke(app, ["model", "list", "--markdown"]).stdout
    assert "our_arm: absolute joint angles of a UR10e" in run.invoke(app, ["model", "check", "ours"]).stdout
    assert "is written in Python" in str(run.invoke(app, ["model", "show", "aloha"]).exception)


ENTRY = "convention:\n  - name: ours\n    rate_hz: 10\n    {}\n    gripper: {{closed: 0, open: 1}}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ENTRY.format("joints: {arm: UR4, are: absolute}"), r"line 4: .*arm.*'UR4'.*UR10e"),
        (ENTRY.format("joints: {arm: UR5, are: relative}"), r"line 4: .*'absolute' or 'changes'"),
        (ENTRY.format("joints: {arm: UR5, are: absolute, unit: {clip: true}}"), r"line 4: .*not clipped"),
        (ENTRY.format("pose: {rotation: {form: euler}}"), r"line 4: .*roll_pitch_yaw"),
        (ENTRY.format("pose: {frame: world, rotation: {form: rotation_vector}}"), r"line 4: .*'world'.*base_link"),
        (ENTRY.format("pose: {translation: {m: -1}, rotation: {form: rotation_vector}}"), r"line 4: .*more than 0"),
        (ENTRY.format("meaning: neither"), r"line 2: .*either pose or joints"),
        (ENTRY.format("padded_to: 7\n    joints: {arm: Franka Panda, are: absolute}"), r"line 2: .*8 columns"),
        (LABS.replace("our_arm", "aloha"), r"lab.yaml: .*'aloha'.*Python"),
        (ENTRY.format("unit: mm"), r"line 4: .*unknown key"),
        (ENTRY.format("joints: {arm: UR5, are: absolute}").replace("open: 1", "open: 0"), r"line 5: .*both 0"),
        (ENTRY.format("joints: {arm: UR5, are: absolute}").replace("10", "0"), r"line 3: .*more than 0"),
        (LABS.replace("convention: our_arm", "convention: their_arm"), r"line 14: .*'their_arm'"),
        (LABS.replace("convention: our_arm", "convention: {from: nowhere}"), r"line 14: .*cannot read nowhere"),
        (LABS.replace("convention: our_arm", "convention: {from: a, name: b}"), r"line 14: .*stands alone"),
    ],
    ids=[
        "arm", "are", "clip", "form", "frame", "metres", "neither", "padded", "taken", "key", "gripper", "rate", "name",
        "folder", "from",
    ],
)  # fmt: skip
def test_a_mistake_is_refused_at_its_line(labs_file: Any, text: str, why: str) -> None:
    labs_file(text)
    with pytest.raises(InputError, match=why):
        Policies().read()


def test_the_examples_of_the_page_are_read(labs_file: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[3] / "docs/use/conventions.md").read_text(encoding="utf-8")
    blocks = [block.partition("```")[0] for block in page.split("```yaml\n")[1:]]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demos").mkdir()
    dataset(tmp_path / "demos", EXPORT)
    assert len(blocks) == 2
    for block, name in zip(blocks, ("mine", "trained"), strict=True):
        labs_file(block)
        assert isinstance(Policies()[name].convention, ConventionEntry)
    labs_file(blocks[0])
    Policies().read()
    hand = CONVENTIONS["our_hand"].chunk([2.0, 0, 0, 0, 0, -0.5, 0.1])
    assert (hand.frame, hand.deltas[0].tolist()) == ("tcp", [0.05, 0, 0, 0, 0, -0.25, 1.0])
    known = {f"`{key}`" for key in ConventionEntry.model_fields} - {"`pose`", "`joints`"}
    assert not [key for key in known if key not in page], "a key that the page does not tell"


# Data sets ------------------------------------------------------------------------------------------------------------

EXPORT = {
    "name": "export", "rate_hz": 10.0, "joints": {"arm": "UR5", "are": "absolute", "tool_m": 0.235},
    "gripper": {"closed": 0.0, "open": 0.14},
}  # fmt: skip


def dataset(folder: Path, convention: Any) -> Path:
    (folder / "meta").mkdir(exist_ok=True)
    feature = {"dtype": "float32", "shape": [7], **({} if convention is None else {"convention": convention})}
    (folder / "meta/info.json").write_text(json.dumps({"fps": 10, "features": {"action": feature}}))
    return folder


def test_an_entry_reads_the_convention_of_a_data_set(tmp_path: Path) -> None:
    dataset(tmp_path, EXPORT)
    fields = {"name": "mine", "description": "", "adapter": "lerobot"}
    for where in (tmp_path, tmp_path / "meta/info.json"):
        entry = PolicyEntry(**fields, convention={"from": str(where)})  # type: ignore[arg-type]
        assert entry.convention == ConventionEntry(**EXPORT)  # type: ignore[arg-type]
        assert entry.means is not None
        assert entry.means.joints_of(observed()) == pytest.approx([*observed().joints_rad, 0.14])


@pytest.mark.parametrize(
    ("convention", "why"),
    [
        (None, "names no convention under features, action"),
        ({**EXPORT, "rate_hz": 0}, "info.json: features, action, convention.*rate_hz.*more than 0"),
        ("pi0_base", "a mapping"),
    ],
    ids=["none", "no rate", "a name"],
)
def test_a_data_set_without_one_says_so(tmp_path: Path, convention: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        of_dataset(str(dataset(tmp_path, convention)))


def test_a_file_that_is_no_json_says_so(tmp_path: Path) -> None:
    (tmp_path / "info.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        of_dataset(str(tmp_path / "info.json"))
