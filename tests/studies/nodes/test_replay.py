"""The twins of a recording, from an MCAP file of real messages to the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merton_interfaces.msg import ActionChunk, CellState, TrialEvidence, TrialResult
from rclpy.serialization import serialize_message
from sensor_msgs.msg import CompressedImage, JointState
from std_msgs.msg import String
from typer.testing import CliRunner

pytest.importorskip("mcap_ros2.decoder", reason="MCAP is not installed (the extra recording)")

from bags import write_bag
from merton.cli.main import app
from merton.errors import InputError
from merton.experiment.plan import distortion_seed, single_trial
from merton.files import file_sha256
from merton.perception.camera.decoding import color_of
from merton.perception.distortion.setting import Setting
from merton.recording.schemas import schema_of
from merton.recording.writer import Channel, RecordingWriter
from merton.results.records import Outcome, TestCase, TrialRecord
from merton_nodes.recording.recorded_topics import type_name
from merton_nodes.recording.rescore_recording import rescored
from merton_nodes.ros import conversions as convert
from merton_nodes.ros.trial_messages import result_message
from merton_studies.twins.executed import WatchedPorts, recorded_run
from merton_studies.twins.recorded import Decision, RecordedTrial, read_recording
from merton_studies.twins.replay import replay

MESSAGES = list[tuple[str, Any]]
SECOND_NS = 1_000_000_000
BLUR, FLAT = Setting("gaussian_blur", 1), Setting("hsv_saturation", 5)


@pytest.fixture(scope="module")
def trials() -> tuple[RecordedTrial, ...]:
    """A pick of glance in two scenes, and one of the second scene that counts as distorted."""
    with WatchedPorts() as ports:
        spec, _ = single_trial("glance", "pick", seed=0)
        first, second = (recorded_run(ports, spec, "pick", scene)[0] for scene in (0, 1))
    distorted = replace(second, id="glance.pick.1.jpeg.3", distortion="jpeg", level=3)
    return first, second, distorted


def messages(trials: Sequence[RecordedTrial]) -> MESSAGES:
    """What a recorder writes of trials that begin a second apart, results after all of them."""
    found: MESSAGES = [("/robot_description", String(data='<?xml version="1.0"?><robot name="merton_cell"/>'))]
    for number, trial in enumerate(trials):
        at_ns, decision = (number + 1) * SECOND_NS, trial.decisions[0]
        state = CellState(header=convert.header(at_ns, ""), task=trial.task, seed=trial.scene, scene=number + 1,
                          instruction=trial.instruction)  # fmt: skip
        later = convert.joint_state_message(at_ns + 10, np.zeros(6), np.zeros(6), decision.least_opening_m)
        joints = convert.joint_state_message(at_ns, decision.joints_rad, np.zeros(6), decision.gripper_opening_m)
        found += [("/cell/state", state), ("/joint_states", joints), ("/joint_states", later)]
        for camera, picture in decision.pictures.items():
            image = CompressedImage(header=convert.header(at_ns, camera), format=picture.color.format)
            image._data = memoryview(picture.color.data)
            info = convert.camera_info_message(picture.intrinsics, at_ns, camera)
            base = f"/camera/{camera}/color"
            found += [(f"{base}/camera_info", info), (f"{base}/image_raw/compressed", image)]
        found.append(("/experiment/chunk/distorted", convert.chunk_message(decision.chunk, at_ns)))
    for trial in trials:
        case = TestCase(trial.task, trial.scene, trial.distortion, int(trial.level))
        chunk = convert.chunk_message(trial.decisions[0].chunk, 0)
        record = TrialRecord(experiment="run", agent=trial.agent, case=case, outcome=Outcome.SUCCESS)
        evidence = TrialEvidence(experiment_id="run", trial_id=record.id, first_chunks=[chunk, chunk])
        found.append(("/trial_evidence", evidence))
        found.append(("/trial_results", result_message(record, distortion_seed(0, case))))
    return found


def write(path: Path, content: MESSAGES) -> Path:
    writer = RecordingWriter(path)
    for number, (topic, message) in enumerate(content):
        writer.put(Channel(topic, type_name(type(message))), bytes(serialize_message(message)), number)
    writer.close()
    assert writer.problem == ""
    return path


@pytest.fixture(scope="module")
def recording(trials, tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("bag") / "lab.mcap", messages(trials))


def test_a_recording_gives_back_what_the_policy_met(trials, recording: Path) -> None:
    found = read_recording(recording)
    assert (found.without_result, found.torn, found.linkage) == (0, "", False)
    for given, read in zip(trials, found.trials, strict=True):
        assert (read.id, read.task, read.scene, read.instruction) == (given.id, "pick", given.scene, given.instruction)
        assert (read.policy, read.outcome, read.distortion) == ("glance", Outcome.SUCCESS, given.distortion)
        (one,), (other,) = given.decisions, read.decisions
        assert np.array_equal(one.chunk.deltas, other.chunk.deltas)
        assert np.array_equal(one.joints_rad, other.joints_rad)
        assert one.gripper_opening_m == pytest.approx(other.gripper_opening_m, abs=1e-12)
        assert one.least_opening_m == pytest.approx(other.least_opening_m, abs=1e-12)
        assert one.least_opening_m < one.gripper_opening_m - 0.05
        for camera, picture in one.pictures.items():
            assert bytes(other.pictures[camera].color.data) == picture.color.data
            assert other.pictures[camera].intrinsics == picture.intrinsics


def test_a_result_belongs_to_the_trial_of_its_first_chunk(trials, tmp_path: Path) -> None:
    """A run of the oracle in the same scene came before it and has no result."""
    first = trials[0]
    decision = replace(first.decisions[0], chunk=replace(first.decisions[0].chunk, model="oracle"))
    added = replace(first, agent="oracle", policy="oracle", decisions=(decision,))
    told = [
        (topic, message)
        for topic, message in messages([added, first])
        if not getattr(message, "trial_id", "").startswith("oracle") and getattr(message, "agent_id", "") != "oracle"
    ]
    found = read_recording(write(tmp_path / "lab.mcap", told))
    assert [(trial.policy, trial.agent) for trial in found.trials] == [("glance", first.agent)]
    assert found.without_result == 1


@pytest.mark.parametrize("late", ["/cell/state", "/experiment/chunk/distorted", "/joint_states", "color/camera_info"])
def test_topics_may_be_scenes_behind_one_another(trials, tmp_path: Path, late: str) -> None:
    """A recorder that was held up writes what has come topic by topic."""
    content = messages(trials)
    behind = [item for item in content if item[0].endswith(late)]
    told = [item for item in content if not item[0].endswith(late)] + behind
    found, expected = (
        read_recording(write(tmp_path / name, each)).trials for name, each in (("late", told), ("in_time", content))
    )
    assert [(each.id, len(each.decisions)) for each in found] == [(each.id, 1) for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one.decisions[0].pictures == other.decisions[0].pictures
        assert np.array_equal(one.decisions[0].joints_rad, other.decisions[0].joints_rad)
        assert one.decisions[0].least_opening_m == other.decisions[0].least_opening_m


def test_a_picture_that_the_recorder_lost_is_not_replaced_by_an_older_one(trials, tmp_path: Path) -> None:
    """In a simulated cell, whose pictures have the stamps of the decisions."""
    content = messages(trials[:2])
    camera = "/camera/top/color/image_raw/compressed"
    (_, second) = (number for number, (topic, _) in enumerate(content) if topic == camera)
    older = CompressedImage(header=convert.header(2 * SECOND_NS - 1, "top"), format=content[second][1].format)
    older._data = content[second][1].data
    told = [*content[:second], (camera, older), *content[second + 1 :]]
    found = replay(write(tmp_path / "lost.mcap", told), [FLAT])
    assert {each.trial.scene for each in found.twins} == {0}
    assert found.notes[0].startswith("trials without a picture that their policy saw, and so without twins: 1 ")
    free = [item for item in content if item[0] != camera]
    with pytest.raises(InputError, match="no picture of the camera 'top' at step 0"):
        replay(write(tmp_path / "none.mcap", free), [FLAT])


def test_a_raw_image_comes_before_its_jpeg(trials, tmp_path: Path) -> None:
    grey = np.full((240, 424, 3), 77, np.uint8)
    grey[5, 7] = 200
    content = messages(trials[:1])
    number, jpeg = next((n, m) for n, (topic, m) in enumerate(content) if topic.endswith("image_raw/compressed"))
    raw = convert.color_message(grey, SECOND_NS, jpeg.header.frame_id)
    for place in (number, number + 1):
        told = [*content[:place], (content[number][0].removesuffix("/compressed"), raw), *content[place:]]
        found = read_recording(write(tmp_path / f"{place}.mcap", told))
        assert np.array_equal(color_of(found.trials[0].decisions[0].pictures["top"].color), grey)


def bag_of(content: MESSAGES) -> list[Any]:
    """The messages as the helper of bags takes them."""
    found = []
    for topic, message in content:
        schema = schema_of(type_name(type(message)))
        found.append((topic, schema.name, schema.text, schema.type_hash, bytes(serialize_message(message))))
    return found


def seen(path: Path) -> list[tuple[Any, ...]]:
    """What is read of each trial."""

    def told(one: Decision) -> tuple[Any, ...]:
        return one.joints_rad.tolist(), one.least_opening_m, one.pictures, one.chunk.deltas.tolist()

    return [(trial.id, trial.outcome, [told(one) for one in trial.decisions]) for trial in read_recording(path).trials]


@pytest.mark.parametrize(
    ("storage", "packed", "parts"),
    [("MCAP", "NONE", 4), ("MCAP", "MESSAGE", 3), ("MCAP", "FILE", 2), ("SQLITE3", "NONE", 5), ("SQLITE3", "FILE", 1)],
)
def test_a_bag_is_read_whole_whatever_its_form(trials, recording, tmp_path, storage, packed, parts) -> None:
    """The seams of the parts lie within trials."""
    pytest.importorskip("rosbags.rosbag2", reason="rosbags is not installed (make develop)")
    bag = write_bag(tmp_path / "bag", bag_of(messages(trials)), storage, packed, parts)
    assert seen(bag) == seen(recording)
    assert len(seen(bag)) == len(trials)


@pytest.mark.parametrize(
    "topic", ["/joint_state_broadcaster/joint_states", "/gazebo/joint_states", "/kinova/joint_states"]
)
def test_joint_states_of_other_programs_are_not_the_robots(trials, recording, tmp_path: Path, topic: str) -> None:
    """As `ros2 bag record --all` has them: without the gripper, or of another arm."""
    content = messages(trials)
    foreign = convert.joint_state_message(1, np.full(6, 9.0), np.zeros(6), 0.02)
    bare = JointState(header=foreign.header, name=["elbow_joint"], position=[1.0])
    told: MESSAGES = [("/kinova/robot_description", String(data='<robot name="gen3"/>'))]
    for name, message in content:
        told.append((name, message))
        if name == "/joint_states":
            for other in (foreign, bare):
                late = type(other)(header=message.header, name=other.name, position=other.position)
                told.append((topic, late))
    assert seen(write(tmp_path / "all.mcap", told)) == seen(recording)


def test_a_graph_in_a_namespace_is_read_and_two_graphs_are_refused(trials, recording, tmp_path: Path) -> None:
    content = messages(trials)
    lab = [(f"/lab1{name}", message) for name, message in content]
    foreign = [("/joint_states", JointState(name=["panda_joint1"], position=[0.0]))]
    assert seen(write(tmp_path / "lab.mcap", foreign + lab)) == seen(recording)
    with pytest.raises(InputError, match=r"the topics of 2 graphs, in /, /lab1: record one"):
        read_recording(write(tmp_path / "two.mcap", content + lab))


def test_a_camera_info_that_does_not_fit_is_a_fault_of_the_recording(trials, tmp_path: Path) -> None:
    """Twice the size, as beside a resized stream; and a lens that no pinhole camera has."""
    double = [424.0, 0, 423.5, 0, 424.0, 239.5, 0, 0, 1]
    for name, change, told in (
        ("double", {"width": 848, "height": 480, "k": double}, "its camera_info is for pictures of 848 x 480 px"),
        ("matrix", {"k": double}, r"principal point lies at \(423.5, 239.5\) of 424 x 240 px: K seems to be that of"),
        ("fisheye", {"distortion_model": "equidistant", "d": [0.0] * 4}, r"lens \(equidistant\) moves pixels"),
        ("zeros", {"k": [0.0] * 9}, "is it calibrated"),
    ):
        path = write(tmp_path / f"{name}.mcap", changed(messages(trials[:1]), "top/color/camera_info", **change))
        with pytest.raises(InputError, match=told):
            replay(path, [FLAT])


def test_a_camera_without_camera_info_is_said_to_count_as_a_d455(trials, tmp_path: Path) -> None:
    content = [
        (topic, message) for topic, message in messages(trials[:1]) if not topic.endswith("top/color/camera_info")
    ]
    told = "no camera_info of top is in the recording: the focal length and principal point of a D455 are taken"
    assert told in replay(write(tmp_path / "bare.mcap", content), [FLAT]).notes


def test_a_type_of_another_form_is_one_sentence(trials, tmp_path: Path) -> None:
    """A result without its experiment, an evidence without its chunks, joint states that are a text."""
    pictures = "/camera/top/color/image_raw/compressed"
    for topic in ("/trial_results", "/trial_evidence", "/cell/state", "/joint_states", pictures):
        content = [(name, String(data="x") if name == topic else message) for name, message in messages(trials[:1])]
        path = write(tmp_path / f"{topic.replace('/', '_')}.mcap", content)
        with pytest.raises(InputError, match=rf"the type std_msgs/msg/String of {topic} has no field '\w+'"):
            read_recording(path)


def test_rescoring_a_type_of_another_form_is_one_sentence(tmp_path: Path) -> None:
    for topic in ("/trial_results", "/lab1/trial_evidence"):
        path = write(tmp_path / f"{topic.replace('/', '_')}.mcap", [(topic, ActionChunk())])
        with pytest.raises(
            InputError, match=f"merton_interfaces/msg/ActionChunk of {topic} has no field 'experiment_id'"
        ):
            rescored(path)


def test_rescoring_takes_the_topics_of_one_graph_alone(recording: Path, trials, tmp_path: Path) -> None:
    """Another program may have a topic that ends alike, of a type of its own."""
    alone = rescored(recording)
    assert alone.checked
    path = write(tmp_path / "plc.mcap", [("/plc/trial_results", String(data="x")), *messages(trials)])
    assert rescored(path).checked == alone.checked
    path = write(tmp_path / "two.mcap", [("/lab1/trial_results", TrialResult()), *messages(trials)])
    with pytest.raises(InputError, match="the topics of 2 graphs, in /, /lab1"):
        rescored(path)


def test_a_torn_recording_is_called_by_its_own_name(recording: Path, tmp_path: Path, monkeypatch) -> None:
    """A note that begins with a path keeps its letters."""
    monkeypatch.chdir(tmp_path)
    path = Path("recs/cut.mcap")
    path.parent.mkdir()
    path.write_bytes(recording.read_bytes()[:-60])
    result = CliRunner().invoke(app, ["whatif", str(path), "--distort", "gaussian_blur@1"])
    assert result.exit_code == 0, result.output
    assert "recs/cut.mcap is torn or damaged near byte" in " ".join(result.output.split())


def test_twins_of_a_recording_are_those_of_the_trial(trials, recording: Path) -> None:
    found = replay(recording, [BLUR, FLAT])
    assert found.notes == ("1 distorted trial skipped (twins start from undistorted ones)",)
    left = {(each.trial.scene, each.setting): each.away.has_left for each in found.twins if each.setting.level}
    assert left == {(0, BLUR): False, (0, FLAT): True, (1, BLUR): False, (1, FLAT): True}
    assert found.about["recording_sha256"] == file_sha256(recording)


def test_the_command_writes_page_and_tables_twice_alike(recording: Path, tmp_path: Path) -> None:
    words = ["whatif", str(recording), "--distort", "hsv_saturation@5", "--distort", "gaussian_blur@1"]
    contents = []
    for name in ("one", "two"):
        result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        assert "100 %" in result.output
        contents.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert contents[0] == contents[1]
    assert {"whatif.html", "twins.csv", "twins.json"} <= contents[0].keys()
    rows = list(csv.DictReader(contents[0]["twins.csv"].decode().splitlines()))
    assert [(row["distortion"], row["left"]) for row in rows[:3]] == [
        ("reference", "False"), ("hsv_saturation", "True"), ("gaussian_blur", "False"),
    ]  # fmt: skip
    told = json.loads(contents[0]["twins.json"])
    assert [(each["distortion"], each["left"], each["trials"]) for each in told["settings"]] == [
        ("hsv_saturation", 1.0, 2), ("gaussian_blur", 0.0, 2),
    ]  # fmt: skip
    assert told["self_check"][0]["within"] == 2
    assert contents[0]["whatif.html"].count(b"data:image/jpeg;base64,") == 4


def changed(content: MESSAGES, topic: str, **fields: Any) -> MESSAGES:
    """The messages with other fields in those of a topic; without fields they are left out."""
    kept = []
    for name, message in content:
        if name.endswith(topic):
            if not fields:
                continue
            message = type(message)(**{key: getattr(message, key) for key in message.get_fields_and_field_types()})
            for key, value in fields.items():
                setattr(message, key, value)
        kept.append((name, message))
    return kept


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("robot_description", {"data": '<robot name="panda"/>'}), "another robot: 'panda'"),
        (("joint_states", {"name": [f"panda_joint{n}" for n in range(7)]}), "another robot: its joint states lack"),
        (("image_raw/compressed", {}), "no picture of the camera 'top'"),
        (("chunk/distorted", {}), "no trial with its result"),
        (("trial_results", {}), "no trial with its result"),
        (("chunk/distorted", {"model_id": "mine"}), "policy 'mine' is not in the catalogue"),
        (("chunk/distorted", {"model_id": "oracle"}), "no undistorted trial whose policy decides by pictures"),
    ],
)
def test_a_recording_without_twins_is_one_sentence(trials, tmp_path: Path, change, told: str) -> None:
    content = messages(trials[:1])
    if change[0] == "chunk/distorted":  # so that the evidence does not contradict
        content = changed(content, "trial_evidence")
    path = write(tmp_path / "lab.mcap", changed(content, change[0], **change[1]))
    with pytest.raises(InputError, match=told):
        replay(path, [FLAT])


def test_a_run_that_twins_cannot_imitate_is_refused(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "lab.mcap"
    path.write_bytes(recording.read_bytes())
    design = "name: a\nagents: [{id: a, vla: glance}]\ntasks: [pick]\n"
    (tmp_path / "experiment.yaml").write_text(f"{design}latency_s: 0.2\n")
    with pytest.raises(InputError, match="latency_s"):
        replay(path, [FLAT])
    (tmp_path / "experiment.yaml").write_text(f"{design}seed: 5\nmin_image_quality: 6\n")
    found = replay(path, [FLAT])
    assert "seed 5" in found.notes[-1]
    assert {each.motion.verdict for each in found.twins} == {"refused"}


def test_a_scene_is_shown_to_another_policy_once(trials, tmp_path: Path) -> None:
    """The recorded policy is asked where it decided itself; elsewhere the first trial of a scene has the pictures."""
    first, second, _ = trials
    decision = replace(second.decisions[0], chunk=replace(second.decisions[0].chunk, model="servo"))
    own, case = {"policy": "servo", "decisions": (decision,)}, "pick.1.reference.0"
    others = [replace(second, id=f"{agent}.{case}", agent=agent, **own) for agent in ("one", "two")]
    asked = [
        [each.trial.id for each in replay(path, [], "glance").twins]
        for path in (
            write(tmp_path / "a.mcap", messages([first, *others])),
            write(tmp_path / "b.mcap", messages([*others, second])),
        )
    ]
    assert asked == [[first.id, others[0].id], [second.id]]


def test_a_policy_that_is_named_must_look_at_pictures(recording: Path) -> None:
    with pytest.raises(InputError, match="simulator's state"):
        replay(recording, [FLAT], "oracle")
    with pytest.raises(InputError, match="unknown vla 'glanse'; did you mean 'glance'"):
        replay(recording, [FLAT], "glanse")
