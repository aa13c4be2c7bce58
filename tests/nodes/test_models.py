"""vlm_node and vla_node over real ROS 2: batches, exchange of models, cancelling, and error codes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import DiagnosticArray
from merton_interfaces.action import AnswerQuestion
from merton_interfaces.srv import PredictActions
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.task import Future
from sensor_msgs.msg import JointState

from merton.cognition.models.base import MODELS, Answer, ModelEntry, Question, VisionLanguageModel
from merton.decision.models.base import POLICIES, Policy, PolicyEntry, example_observation
from merton.errors import InfrastructureError, InvalidActionError, InvalidAnswerError, MissingDependencyError
from merton.experiment.world_ports import WorldPorts
from merton.simulation.scene import make_scene
from merton.world.action import ActionChunk
from merton.world.cell import ARM_JOINTS, load_cell
from merton.world.observation import Observation
from merton_nodes.experiment.ros_ports import RosPorts
from merton_nodes.models import model_node, vlm_node
from merton_nodes.models.vla_node import VlaNode
from merton_nodes.models.vlm_node import VlmNode
from merton_nodes.ros import conversions as convert
from merton_nodes.ros import names
from merton_nodes.ros.service_caller import pauses_s
from patience import stretched
from ros import LIMIT_S, Probe, Ros, up

FAILURES: dict[str, Exception] = {
    "out of memory": ValueError("out of memory"),
    "no text": InvalidAnswerError("what it gave is no text"),
    "no action": InvalidActionError("what it gave is no action"),
    "no server": InfrastructureError("the server is gone"),
    "no extra": MissingDependencyError("install it with pip"),
    "no package": ImportError("cannot import name 'AutoModel'"),
    "no file": FileNotFoundError("weights.bin"),
}


class Parrot(VisionLanguageModel):
    """Repeats the question once its gate is open, or raises the error that the question names."""

    gate = threading.Event()
    batches: ClassVar[list[list[str]]] = []
    warm: ClassVar[list[str]] = []

    def __init__(self, name: str = "parrot") -> None:
        self.name = name

    def answer(self, images: Sequence[Any], question: str, max_tokens: int = 32) -> Answer:
        if question in FAILURES:
            raise FAILURES[question]
        return Answer(question) if question != "None" else None  # type: ignore[return-value]

    def answer_batch(self, questions: Sequence[Question]) -> list[Answer]:
        type(self).batches.append([question.text for question in questions])
        assert self.gate.wait(stretched(LIMIT_S))
        return super().answer_batch(questions)

    def warm_up(self) -> None:
        if self.name == "offline":
            raise InfrastructureError("the server is gone")
        if self.name == "absent":
            raise MissingDependencyError("install it with pip")
        type(self).warm.append(self.name)


class Fickle(Policy):
    """Stands still for a fifteenth of a second, or raises the error that the instruction names."""

    name = "fickle"

    def act(self, observation: Observation) -> ActionChunk:
        if observation.instruction in FAILURES:
            raise FAILURES[observation.instruction]
        value = np.nan if observation.instruction == "nan" else 0.0
        return ActionChunk(np.full((1, 7), value), 1 / 15)

    def make_example(self) -> Observation:
        return example_observation("reach")


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Models of these tests beside Merton's own."""
    here = __name__
    Parrot.gate = threading.Event()
    Parrot.gate.set()
    Parrot.batches, Parrot.warm = [], []
    monkeypatch.setattr(vlm_node, "RESULT_LIFETIME_S", 2 * LIMIT_S)  # a busy machine loses no result of these tests
    for catalogue in (MODELS, POLICIES):
        assert "sage" not in catalogue  # read now, so that the additions go with the test
        monkeypatch.setattr(catalogue, "_entries", dict(catalogue._entries))
    for name, memory_gb in (("parrot", 8.0), ("macaw", 8.0), ("offline", 0.0), ("absent", 0.0)):
        settings = {"name": name}
        MODELS._entries[name] = ModelEntry(
            name=name, description="", adapter=f"{here}:Parrot", settings=settings, memory_gb=memory_gb
        )
    POLICIES._entries["fickle"] = PolicyEntry(name="fickle", description="", adapter=f"{here}:Fickle")
    yield
    Parrot.gate.set()


def picture() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 255, (48, 64, 3), np.uint8)


def question(text: str, model: str = "parrot") -> AnswerQuestion.Goal:
    return AnswerQuestion.Goal(model_id=model, image=convert.color_message(picture(), 0, ""), question=text)


class PendingGoal:
    """A goal on its way: its handle, then its result."""

    def __init__(self, ros: Ros, probe: Probe, goal: AnswerQuestion.Goal) -> None:
        self.ros, self.handle, self.response = ros, None, None
        client = ros.action_client(probe, AnswerQuestion, names.ANSWER)
        ros.until(client.server_is_ready)
        ros.executor.create_task(lambda: client.send_goal_async(goal).add_done_callback(self.on_handle))
        ros.until(lambda: self.handle)

    def on_handle(self, future: Any) -> None:
        handle = future.result()
        handle.get_result_async().add_done_callback(self.on_result)
        self.handle = handle

    def on_result(self, future: Any) -> None:
        self.response = future.result()

    def cancel(self) -> None:
        self.ros.executor.create_task(self.handle.cancel_goal_async)

    @property
    def answer(self) -> Any:
        """The result, with its goal's status."""
        return self.ros.until(lambda: self.response)


def prefer(ros: Ros, probe: Probe, node: str, *models: str) -> Any:
    """Set `preload`."""
    request = SetParameters.Request(parameters=[Parameter("preload", value=list(models)).to_parameter_msg()])
    return ros.call(probe, SetParameters, f"{node}/set_parameters", request).results[0]


def predict(model: str, instruction: str = "") -> PredictActions.Request:
    request = PredictActions.Request(
        model_id=model, instruction=instruction or make_scene("reach", 0).command.instruction, gripper=1.0
    )
    request.state = JointState(name=list(ARM_JOINTS), position=[0.0, -1.7, 1.7, -1.57, -1.57, 0.0])
    pose = np.array([[0, -1, 0, 0.45], [-1, 0, 0, 0], [0, 0, -1, 0.3], [0, 0, 0, 1]], float)
    request.tcp = convert.pose_stamped(pose, 0)
    return request


def test_vlm_answers_and_reports_a_model_that_does_not_exist(ros: Ros, probe: Probe) -> None:
    up(ros, VlmNode)
    asked = "In about ten words, say where the object is and how to pick up the red cube."
    result = ros.act(probe, AnswerQuestion, names.ANSWER, question(asked, "describe"))
    assert result.error_code == 0
    assert 3 <= len(result.answer.split()) <= 20
    result = ros.act(probe, AnswerQuestion, names.ANSWER, question(asked, "sage"))
    assert result.error_code == 405, "no model was asked, so no model failed"
    assert "choose one of: " in result.error_msg
    assert "describe" in result.error_msg


def test_vla_decides_and_reports_errors(ros: Ros, probe: Probe) -> None:
    up(ros, VlaNode, preload=["hold"], scene_deadline_s=0.2)
    response = ros.call(probe, PredictActions, names.PREDICT, predict("hold"))
    assert response.error_code == 0
    assert convert.chunk_of(response.chunk).done
    response = ros.call(probe, PredictActions, names.PREDICT, predict("sage"))
    assert response.error_code == 405
    assert "choose one of: " in response.error_msg
    assert "oracle" in response.error_msg
    response = ros.call(probe, PredictActions, names.PREDICT, predict("servo"))
    assert response.error_code == 100, "servo was given no view"
    response = ros.call(probe, PredictActions, names.PREDICT, predict("oracle"))
    assert response.error_code == 406
    assert "only a simulated cell has an oracle" in response.error_msg


def test_vla_refuses_a_policy_that_keeps_a_state(ros: Ros, probe: Probe) -> None:
    POLICIES._entries["keeps"] = POLICIES["fickle"].model_copy(update={"name": "keeps", "stateful": True})
    up(ros, VlaNode, preload=[""])
    response = ros.call(probe, PredictActions, names.PREDICT, predict("keeps"))
    assert response.error_code == 405
    assert "one model for both sides of an image: run it without ROS" in response.error_msg


@pytest.mark.parametrize(
    ("failure", "code", "counter"),
    [
        ("out of memory", 100, "errors of models"),
        ("no text", 101, "invalid outputs"),
        ("no server", 405, "errors of the infrastructure"),
        ("no extra", 401, "errors of the infrastructure"),
        ("no package", 401, "errors of the infrastructure"),
        ("no file", 405, "errors of the infrastructure"),
    ],
)
def test_each_kind_of_failure_has_its_code(ros: Ros, probe: Probe, failure: str, code: int, counter: str) -> None:
    vlm, vla = up(ros, VlmNode, preload=["parrot"]), up(ros, VlaNode, preload=["fickle"])
    result = ros.act(probe, AnswerQuestion, names.ANSWER, question(failure))
    vla_failure = "no action" if failure == "no text" else failure
    response = ros.call(probe, PredictActions, names.PREDICT, predict("fickle", vla_failure))
    for node, given, requested in ((vlm, result, failure), (vla, response, vla_failure)):
        assert given.error_code == code
        assert str(FAILURES[requested]) in given.error_msg
        assert node.counters[counter] == 1
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello")).answer == "hello", "the node goes on"
    assert ros.call(probe, PredictActions, names.PREDICT, predict("fickle", "reach")).error_code == 0
    assert ros.call(probe, PredictActions, names.PREDICT, predict("fickle", "nan")).error_code == 101


def test_a_malformed_request_is_not_the_models_failure(ros: Ros, probe: Probe) -> None:
    up(ros, VlmNode, preload=["parrot"])
    goal = question("hello")
    goal.image.encoding = "yuv422"
    result = ros.act(probe, AnswerQuestion, names.ANSWER, goal)
    assert result.error_code == 405
    assert "yuv422" in result.error_msg


def test_a_finished_goal_keeps_no_picture(ros: Ros, probe: Probe) -> None:
    node = up(ros, VlmNode, preload=["parrot"])
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello")).answer == "hello"
    kept = list(node.server._goal_handles.values())
    assert kept, "the result is still there for a repeated request"
    assert [len(handle.request.image.data) for handle in kept] == [0] * len(kept)


def test_a_finished_goal_expires_soon(ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vlm_node, "RESULT_LIFETIME_S", 0.05)
    node = up(ros, VlmNode, preload=["parrot"])
    client = ros.action_client(probe, AnswerQuestion, names.ANSWER)
    ros.until(client.server_is_ready)
    ros.executor.create_task(lambda: client.send_goal_async(question("hello")) and None)
    ros.until(lambda: node.counters["answers"])
    ros.until(lambda: not node.server._goal_handles)


class Forgetful:
    """An action whose result has expired at its first request."""

    def __init__(self) -> None:
        self.goals: list[Any] = []

    def wait_for_server(self, timeout_sec: float) -> bool:
        return True

    def send_goal_async(self, goal: Any) -> Future:
        self.goals.append(goal)
        return done(self)

    accepted = True

    def get_result_async(self) -> Future:
        status = GoalStatus.STATUS_UNKNOWN if len(self.goals) == 1 else GoalStatus.STATUS_SUCCEEDED
        return done(AnswerQuestion.Impl.GetResultService.Response(status=status))


def done(value: Any) -> Future:
    future = Future()
    future.set_result(value)
    return future


def test_the_goal_of_an_expired_result_is_sent_again(ros: Ros, probe: Probe) -> None:
    ports, client = RosPorts(probe, load_cell(), deadline_s=1.0), Forgetful()
    assert ports.act_on(client, "goal", "it", stretched(2.0)) == AnswerQuestion.Result()
    assert client.goals == ["goal", "goal"]


def test_a_call_is_repeated_ever_more_rarely_until_its_deadline() -> None:
    assert list(pauses_s(120.0)) == [10.0, 20.0, 40.0, 50.0]
    assert list(pauses_s(1.0)) == [0.25, 0.5, 0.25]


def test_the_loading_of_a_model_is_no_part_of_a_deadline(
    ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = threading.Event()
    monkeypatch.setattr(Parrot, "warm_up", lambda _: loaded.wait(stretched(LIMIT_S)))
    monkeypatch.setattr(model_node, "LOADING_ANSWER_S", 0.1)
    node = up(ros, VlmNode, preload=[""])
    ports = RosPorts(probe, load_cell(), deadline_s=1.0)
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello")).error_code == 408
    answers: list[Answer] = []
    asking = threading.Thread(
        target=lambda: answers.append(ports.answer("parrot", picture(), "hello", "distorted")), daemon=True
    )
    asking.start()
    ros.until(lambda: node.counters["asked while loading"] > 15)  # longer than the deadline
    assert not answers
    loaded.set()
    assert ros.until(lambda: answers)[0].text == "hello"
    assert Parrot.batches == [["hello"]]


@pytest.mark.parametrize("instruction", ["hello", "None", *(name for name in FAILURES if name != "no action")])
def test_a_trial_in_one_process_sees_the_same_as_one_over_ros(
    ros: Ros, probe: Probe, monkeypatch: pytest.MonkeyPatch, instruction: str
) -> None:
    up(ros, VlmNode, preload=["parrot"])
    up(ros, VlaNode, preload=["fickle"])
    nowhere: Any = SimpleNamespace(camera_names=())  # no world is needed to ask models
    local: WorldPorts[Any] = WorldPorts(nowhere)
    over_ros = RosPorts(probe, load_cell(), deadline_s=20.0)
    seen = replace(example_observation("reach"), views={})

    def asked(ports: Any) -> Any:
        try:
            return ports.answer("parrot", picture(), instruction, "distorted").text
        except (InfrastructureError, InvalidAnswerError) as error:
            return type(error)

    def decided(ports: Any) -> Any:
        try:
            observation = replace(seen, instruction=instruction.replace("text", "action"))
            chunk = ports.act("fickle", observation, "distorted")
        except (InfrastructureError, InvalidActionError) as error:
            return type(error)
        return chunk.deltas.tolist(), chunk.step_s, chunk.frame, chunk.done, chunk.model

    assert (
        asked(local)
        == asked(over_ros)
        == ({"hello": "hello"} | dict.fromkeys(("out of memory", "no text", "None"), InvalidAnswerError)).get(
            instruction, InfrastructureError
        )
    )
    assert decided(local) == decided(over_ros)


def test_requests_that_arrive_together_are_answered_together(ros: Ros, probe: Probe) -> None:
    up(ros, VlmNode, preload=["parrot"], batch_size=2, batch_window_s=10.0)
    first, second = (PendingGoal(ros, probe, question(text)) for text in ("one", "two"))
    assert (first.answer.result.answer, second.answer.result.answer) == ("one", "two")
    assert Parrot.batches == [["one", "two"]]


def test_the_node_serves_while_a_model_works_and_goals_can_be_cancelled(ros: Ros, probe: Probe) -> None:
    node = up(ros, VlmNode, preload=["parrot", "describe"])
    diagnostics = probe.listen(DiagnosticArray, "/diagnostics", 10)
    Parrot.gate.clear()
    running = PendingGoal(ros, probe, question("running"))
    ros.until(lambda: Parrot.batches)
    queued, last = PendingGoal(ros, probe, question("queued")), PendingGoal(ros, probe, question("last"))
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("what?", "describe")).error_code == 0

    def is_shown(what: str) -> bool:
        return any(v.key == "parrot" and what in v.value for m in diagnostics for s in m.status for v in s.values)

    ros.until(lambda: is_shown("loaded, 2 waiting"))
    queued.cancel()
    assert queued.answer.status == GoalStatus.STATUS_CANCELED
    running.cancel()
    assert running.answer.status == GoalStatus.STATUS_CANCELED, "the model still runs, its result is dropped"
    assert running.answer.result.answer == ""
    Parrot.gate.set()
    assert last.answer.result.answer == "last"
    assert Parrot.batches == [["running"], ["last"]], "requests cancelled in the queue never reach the model"
    assert node.counters["cancelled"] == 2
    diagnostics.clear()
    ros.until(lambda: is_shown("over 2"))
    values = {v.key: v.value for s in diagnostics[-1].status for v in s.values}
    assert float(values["memory"].split()[0]) > 10


def test_a_request_that_takes_too_long_is_an_infrastructure_failure(ros: Ros, probe: Probe) -> None:
    node = up(ros, VlmNode, preload=["parrot"], deadline_s=0.3)
    Parrot.gate.clear()
    running, queued = PendingGoal(ros, probe, question("running")), PendingGoal(ros, probe, question("queued"))
    for asked in (running, queued):
        assert asked.answer.result.error_code == 405
        assert "0.3 s" in asked.answer.result.error_msg
    assert node.counters["too late"] == 2
    node.deadline_s = stretched(LIMIT_S)
    Parrot.gate.set()
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello")).answer == "hello"
    assert ["queued"] not in Parrot.batches


def test_models_are_exchanged_by_parameter(ros: Ros, probe: Probe) -> None:
    node = up(ros, VlmNode, preload=["parrot", "describe"])
    assert Parrot.warm == ["parrot"]
    refused = prefer(ros, probe, "vlm_node", "sage")
    assert not refused.successful
    assert "choose one of" in refused.reason
    assert prefer(ros, probe, "vlm_node", "macaw").successful
    ros.until(lambda: node.exchange == "warm: macaw")
    assert Parrot.warm == ["parrot", "macaw"]
    assert [worker.name for worker in node.pool.workers] == ["describe", "macaw"], "models without memory_gb stay"
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello", "parrot")).answer == "hello", "on demand"
    assert prefer(ros, probe, "vlm_node", "offline").successful
    ros.until(lambda: node.exchange == "warm: none; not loaded: offline")
    assert [worker.name for worker in node.pool.workers] == ["describe", "offline"]


def test_a_node_starts_without_a_remote_server_but_not_without_an_extra(ros: Ros, probe: Probe) -> None:
    up(ros, VlmNode, preload=["offline"])
    assert ros.act(probe, AnswerQuestion, names.ANSWER, question("hello", "offline")).answer == "hello"
    for wrong in ("absent", "sage"):
        node = ros.add(VlmNode, parameter_overrides=[Parameter("preload", value=[wrong])])
        assert node.trigger_configure().name == "FAILURE"
