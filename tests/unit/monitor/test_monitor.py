"""The operator's screen without a graph and without a port: permission, the log of presses, slow browsers."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed (the extra serve)")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from merton.errors import InfrastructureError, InputError
from merton.execution.gate.collision import Guard
from merton.execution.kinematics import base_from_tcp
from merton.monitor import buttons, session
from merton.monitor.app import PAGE, create_app
from merton.monitor.buttons import PressReply
from merton.monitor.hub import Hub, HubFrame
from merton.monitor.motion import BUCKET_S, MOST_ROWS, MotionLog
from merton.monitor.pictures import WIDEST_PX, jpeg
from merton.monitor.presses import PressLog
from merton.monitor.scene import SceneView
from merton.monitor.server import MonitorServer
from merton.monitor.timeline import MOST_EVENTS, Timeline
from merton.web.access import Tokens
from merton.world.cell import load_cell
from patience import stretched

TOKEN = "a token of forty random characters, say"
BASE = "http://localhost:8090"
HELLO = json.dumps({"token": ""})


class Desk:
    """Controls that keep their requests, and answer at once, or never if `silent`."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.silent = False
        self.error: InfrastructureError | None = None

    def _answer(self, *asked: str) -> Future[PressReply]:
        self.asked.append(asked)
        pending: Future[PressReply] = Future()
        if self.error is not None:
            pending.set_exception(self.error)
        elif not self.silent:
            pending.set_result(PressReply(True, "noted"))
        return pending

    def stop(self) -> Future[PressReply]:
        return self._answer("stop")

    def reset(self) -> Future[PressReply]:
        return self._answer("reset")

    def confirm(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        return self._answer("confirm", trial_id, verdict, who)

    def arranged(self, trial_id: str, verdict: str, who: str) -> Future[PressReply]:
        return self._answer("arranged", trial_id, verdict, who)

    def record(self, wanted: bool) -> Future[PressReply]:
        return self._answer("record", str(wanted))


class Screen:
    """An app, its parts, and a client that uses a valid host name."""

    def __init__(self, folder: Path, tokens: Tokens | None = None, names: tuple[str, ...] = ()) -> None:
        self.hub, self.desk, self.log = Hub(), Desk(), folder / "presses.jsonl"
        app = create_app(self.hub, self.desk, PressLog(self.log), tokens=tokens, names=names)
        self.client = TestClient(app, base_url=BASE, client=("192.0.2.7", 4711))

    def press(self, what: str, content: Any = None, token: str = "", **headers: str) -> Any:
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return self.client.post(f"/api/{what}", json={} if content is None else content, headers=headers)

    def watch(self, headers: dict[str, str] | None = None) -> Any:
        return self.client.websocket_connect(f"{BASE.replace('http', 'ws')}/ws", headers=headers or {})

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    screen = Screen(tmp_path)
    with screen.client:
        yield screen


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Screen]:
    """A screen with tokens, as for other machines."""
    file = tmp_path / "tokens.yaml"
    file.write_text(f"tokens:\n  Grace: {hashlib.sha256(TOKEN.encode()).hexdigest()}\n", encoding="utf-8")
    screen = Screen(tmp_path, Tokens(file), names=("lab.example",))
    with screen.client:
        yield screen


def head_of(data: bytes) -> dict[str, Any]:
    """The JSON of an update."""
    (length,) = struct.unpack(">I", data[:4])
    head: dict[str, Any] = json.loads(data[4 : 4 + length])
    return head


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """State and pictures of an update."""
    (length,) = struct.unpack(">I", data[:4])
    head, at, pictures = head_of(data), 4 + length, {}
    for frame in head["frames"]:
        pictures[frame["stream"]] = data[at : at + frame["bytes"]]
        at += frame["bytes"]
    assert at == len(data)
    return head["state"], pictures


# Presses


def test_every_press_is_carried_out_and_logged_with_name_and_time(screen: Screen) -> None:
    assert screen.press("stop", {"who": "Ada"}).json() == {
        "accepted": True,
        "answer": "noted",
        "who": "Ada",
        "logged": True,
    }
    assert screen.press("reset", {"who": " Ada\n\x1b[31m "}).status_code == 200
    assert screen.press("confirm", {"who": "Ada", "trial_id": "t.1", "verdict": "failure"}).status_code == 200
    assert screen.press("arranged", {"who": "Ada", "trial_id": "pick.3", "verdict": "success"}).status_code == 200
    assert screen.press("record", {"who": "Ada", "wanted": False}).status_code == 200
    assert screen.desk.asked == [
        ("stop",),
        ("reset",),
        ("confirm", "t.1", "failure", "Ada"),
        ("arranged", "pick.3", "success", "Ada"),
        ("record", "False"),
    ]
    lines = screen.logged
    assert [(line["press"], line["who"], line["detail"]) for line in lines] == [
        ("stop", "Ada", ""),
        ("reset", "Ada[31m", ""),
        ("confirm", "Ada", "t.1: failure"),
        ("arranged", "Ada", "pick.3: success"),
        ("record", "Ada", "end"),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}\+00:00", line["at_utc"]) for line in lines)
    assert {line["address"] for line in lines} == {"192.0.2.7"}
    assert [one["press"] for one in screen.hub.get("presses")] == ["record", "arranged", "confirm", "reset", "stop"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"who": 7}', b"\xff\xfe", b"[" * 4000], ids=range(7))
def test_a_stop_needs_no_name_and_no_valid_body(screen: Screen, body: bytes) -> None:
    assert screen.client.post("/api/stop", content=body).status_code == 200
    assert screen.desk.asked == [("stop",)]
    assert screen.logged[0]["who"] == "unnamed"


@pytest.mark.parametrize(
    ("what", "content"),
    [
        ("reset", {}),
        ("reset", {"who": " "}),
        ("confirm", {"trial_id": "t", "verdict": "success"}),
        ("confirm", {"who": "Ada", "trial_id": "t", "verdict": "perhaps"}),
        ("confirm", {"who": "Ada", "trial_id": "", "verdict": "success"}),
        ("confirm", {"who": "Ada", "trial_id": ["t"], "verdict": "success"}),
        ("confirm", []),
        ("arranged", {"trial_id": "t", "verdict": "success"}),
        ("arranged", {"who": "Ada", "trial_id": "t", "verdict": "unclear"}),
        ("record", {"wanted": True}),
        ("record", {"who": "Ada", "wanted": "true"}),
        ("record", {"who": "Ada"}),
    ],
)
def test_every_other_press_needs_a_name_and_a_valid_body(screen: Screen, what: str, content: Any) -> None:
    refused = screen.press(what, content)
    assert refused.status_code == 422
    assert refused.json()["detail"].count(".") == 0
    assert screen.desk.asked == []


def test_an_unconfirmed_stop_is_reported_and_logged(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buttons, "ANSWER_LIMIT_S", 0.05)
    screen.desk.silent = True
    late = screen.press("stop")
    assert (late.status_code, late.json()["answer"]) == (504, "no answer within 0.05 s")
    screen.desk.error = InfrastructureError("no node offers arm/stop: nothing was sent")
    absent = screen.press("stop")
    assert (absent.status_code, absent.json()["answer"]) == (503, "no node offers arm/stop: nothing was sent")
    assert [line["accepted"] for line in screen.logged] == [False, False]


def test_a_stop_works_with_a_full_disk(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise InfrastructureError("a press was not logged: no space left on device")

    monkeypatch.setattr(PressLog, "add", full)
    assert screen.press("stop").json()["logged"] is False
    assert screen.desk.asked == [("stop",)]


def test_a_log_that_cannot_be_written_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be logged in .*file.log"):
        PressLog(tmp_path / "file" / "log")


# Who may


def test_with_tokens_only_their_owners_view_and_press(guarded: Screen) -> None:
    for token in ("", "wrong", "ü" * 40):
        header = {"Authorization": f"Bearer {token}".encode()}
        for what in ("stop", "reset", "confirm", "arranged", "record"):
            refused = guarded.client.post(f"/api/{what}", json={"who": "Grace"}, headers=header)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert guarded.client.get("/api/session", headers=header).json()["allowed"] is False
        with guarded.watch() as socket:
            socket.send_text(json.dumps({"token": token}))
            with pytest.raises(WebSocketDisconnect) as closed:
                socket.receive_bytes()
            assert closed.value.code == 1008
    assert guarded.desk.asked == []
    assert guarded.press("stop", {"who": "another person"}, TOKEN).json()["who"] == "Grace"
    assert guarded.logged[0]["who"] == "Grace"
    with guarded.watch() as socket:
        guarded.hub.put("safety", {"mode": "NORMAL"})
        socket.send_text(json.dumps({"token": TOKEN}))
        assert unpacked(socket.receive_bytes())[0]["safety"] == {"mode": "NORMAL"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:8090"}, 421),
        ({"Host": "["}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:8080"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Length": "5000"}, 413),
        ({"Content-Length": "9" * 5000}, 413),
        ({"Content-Length": "-1"}, 413),
    ],
)
def test_another_sites_page_presses_nothing(screen: Screen, headers: dict[str, str], status: int) -> None:
    assert screen.client.post("/api/stop", content=b"{}", headers=headers).status_code == status
    assert screen.desk.asked == []
    if "Content-Length" not in headers:
        with pytest.raises(WebSocketDisconnect), screen.watch(headers):
            pass


@pytest.mark.parametrize("host", ["localhost:8090", "127.0.0.1:8090", "[::1]:8090", "192.0.2.1"])
def test_its_own_page_presses(screen: Screen, host: str) -> None:
    headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert screen.press("stop", None, **headers).status_code == 200


def test_only_loopback_goes_without_tokens(tmp_path: Path) -> None:
    for where in ({"host": "0.0.0.0"}, {"host": "192.0.2.1"}, {"host": "lab.example"}, {"names": ["lab.example"]}):
        with pytest.raises(InputError, match="needs --tokens"):
            MonitorServer(Hub(), Desk(), tmp_path / "log", port=0, **where)  # type: ignore[arg-type]
    server = MonitorServer(Hub(), Desk(), tmp_path / "log", port=0)
    server.stop()
    assert server.address.startswith("http://127.0.0.1:")


def test_a_mistake_on_the_command_line_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokens.yaml").write_text("tokens: {Ada: secret}\n", encoding="utf-8")
    for options, said in (
        (["--host", "0.0.0.0"], "to serve it on 0.0.0.0 it needs --tokens FILE"),
        (["--tokens", str(tmp_path / "none.yaml")], "cannot read"),
        (["--tokens", str(tmp_path / "tokens.yaml")], "tokens.yaml, line 1"),
    ):
        command = [sys.executable, "-m", "merton", "monitor", *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=stretched(120))
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
        assert said in ended.stderr


# Pages


def test_every_answer_forbids_content_of_other_servers(screen: Screen) -> None:
    for path in ("/", "/page/monitor.js", "/nowhere", "/api/session"):
        policy = screen.client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy


def test_the_page_names_no_other_machine_and_holds_no_script_of_its_own() -> None:
    for file in PAGE.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//[a-z]+\.[a-z]|innerHTML|eval\(|<script>|\son\w+=\"|style=\"", text), file
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    used = set(re.findall(r"byId\(\"([\w-]+)\"\)", "".join(f.read_text(encoding="utf-8") for f in PAGE.glob("*.js"))))
    assert used <= set(re.findall(r" id=\"([\w-]+)\"", page))
    assert 'aria-live="assertive"' in page


def test_no_path_leads_out_of_the_page(screen: Screen) -> None:
    for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/docs", "/openapi.json", "/page/"):
        assert screen.client.get(path).status_code == 404, path


# Updates


def test_updates_have_all_content_once_and_then_changes_only(screen: Screen) -> None:
    screen.hub.put("safety", {"mode": "NORMAL"})
    screen.hub.put_frame(HubFrame("top/before", 5, b"picture"))
    with screen.watch() as socket:
        socket.send_text(HELLO)
        assert unpacked(socket.receive_bytes()) == ({"safety": {"mode": "NORMAL"}}, {"top/before": b"picture"})
        screen.hub.put("safety", {"mode": "NORMAL"})  # no news
        screen.hub.put("stop_path", True)
        socket.send_text("ready")
        assert unpacked(socket.receive_bytes()) == ({"stop_path": True}, {})
        socket.send_text("ready")
        assert unpacked(socket.receive_bytes()) == ({}, {})  # the server is alive


def test_a_slow_browser_gets_the_newest_frame_and_blocks_no_other(screen: Screen) -> None:
    """While one update is being shown, a hundred frames pass: of those the browser gets the last, alone."""
    with screen.watch() as slow, screen.watch() as fast:
        for socket in (slow, fast):
            socket.send_text(HELLO)
        screen.hub.put_frame(HubFrame("top/before", 0, b"0"))
        assert unpacked(slow.receive_bytes())[1] == {"top/before": b"0"}
        assert unpacked(fast.receive_bytes())[1] == {"top/before": b"0"}
        for number in range(1, 101):
            screen.hub.put_frame(HubFrame("top/before", number, b"%d" % number))
            if number == 50:
                fast.send_text("ready")
                assert unpacked(fast.receive_bytes())[1] == {"top/before": b"50"}
        slow.send_text("ready")
        assert unpacked(slow.receive_bytes())[1] == {"top/before": b"100"}
    assert not screen.hub.watched


@pytest.mark.parametrize(
    "hello", ["", "ready", "[]", "{}", '{"token": 7}', '{"token": "", "more": 1}', "[" * 9000, "\x00"], ids=range(8)
)
def test_garbage_instead_of_a_hello_ends_the_connection(screen: Screen, hello: str) -> None:
    with screen.watch() as socket:
        socket.send_text(hello)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_bytes()
        assert closed.value.code == 1003


@pytest.mark.parametrize(
    "say", [lambda s: s.send_text("stop"), lambda s: s.send_bytes(b"\xff\x00"), lambda s: s.send_text('{"token": ""}')]
)
def test_garbage_instead_of_ready_ends_the_connection(screen: Screen, say: Callable[[Any], None]) -> None:
    screen.hub.put("stop_path", True)
    with screen.watch() as socket:
        socket.send_text(HELLO)
        socket.receive_bytes()
        say(socket)
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_bytes()
        assert closed.value.code == 1003
    assert screen.desk.asked == []


def test_a_silent_client_is_disconnected(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "HELLO_LIMIT_S", 0.05)
    with screen.watch() as socket, pytest.raises(WebSocketDisconnect) as closed:
        socket.receive_bytes()
    assert closed.value.code == 1008


def test_no_more_browsers_than_it_can_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without a token takes no place, and a browser that answers keeps its own."""
    monkeypatch.setattr("merton.monitor.app.MOST_BROWSERS", 1)
    screen = Screen(tmp_path)
    with screen.client, screen.watch(), screen.watch() as first:
        first.send_text(HELLO)
        first.receive_bytes()
        with screen.watch() as second:
            second.send_text(HELLO)
            with pytest.raises(WebSocketDisconnect) as closed:
                second.receive_bytes()
        assert closed.value.code == 1013
        first.send_text("ready")
        first.receive_bytes()


def test_a_browser_that_no_longer_answers_gives_way_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merton.monitor.app.MOST_BROWSERS", 1)
    monkeypatch.setattr(session, "SLOW_S", 0.0)
    screen = Screen(tmp_path)
    with screen.client, screen.watch() as silent:
        silent.send_text(HELLO)
        silent.receive_bytes()
        with screen.watch() as newcomer:
            newcomer.send_text(HELLO)
            assert unpacked(newcomer.receive_bytes()) == ({}, {})
        with pytest.raises(WebSocketDisconnect) as closed:
            silent.receive_bytes()
        assert closed.value.code == 1013


def test_an_update_tells_how_old_the_look_at_the_stop_path_is(screen: Screen) -> None:
    with screen.watch() as socket:
        socket.send_text(HELLO)
        assert head_of(socket.receive_bytes())["stop_path_age_s"] is None
        for _ in range(2):  # equal content is no update, but it is news
            screen.hub.put("stop_path", True)
        socket.send_text("ready")
        assert 0 <= head_of(socket.receive_bytes())["stop_path_age_s"] < 60


def test_writers_in_many_threads_lose_nothing() -> None:
    hub = Hub()
    threads = [
        threading.Thread(target=lambda k=k: [hub.put(f"{k}", i) for i in range(500)], daemon=True) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(stretched(30))
    assert hub.since(0).sections == {f"{k}": 499 for k in range(4)}
    assert hub.since(0).version == 2000
    assert not hub.since(2000)


# What is drawn


def test_the_arm_is_drawn_as_the_safety_layer_sees_it() -> None:
    cell = load_cell()
    rng = np.random.default_rng(0)
    for _ in range(20):
        joints, opening = rng.uniform(-3, 3, 6), float(rng.uniform(0, cell.gripper.stroke))
        ends, radii = Guard(cell).capsules(joints.reshape(1, 6), opening)
        rows = np.array(SceneView(cell).arm(joints, opening, 0.0)["capsules"])
        np.testing.assert_allclose(rows[:, :6], ends[0].reshape(-1, 6), atol=1e-4)
        np.testing.assert_allclose(rows[:, 6], radii, atol=1e-4)


def test_a_picture_survives_and_a_wide_one_is_made_smaller() -> None:
    pixels = np.zeros((480, 1280, 3), np.uint8)
    pixels[:, 640:] = (250, 20, 30)
    shown = cv2.cvtColor(cv2.imdecode(np.frombuffer(jpeg(pixels), np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    assert shown.shape == (240, WIDEST_PX, 3)
    assert np.abs(shown[120, 600].astype(int) - (250, 20, 30)).max() < 8
    assert shown[120, 40].max() < 8


# What is plotted


def test_the_plots_have_the_speeds_and_distances_of_the_arm() -> None:
    """Base joint alone: each point of the arm moves on a circle, the tool at its distance from the axis."""
    cell = load_cell()
    home, log = np.asarray(cell.home_joints), MotionLog(cell)
    log.add(1.0, home, np.zeros(6), 0.1)
    log.add(2.0, home, [0.5, 0, 0, 0, 0, 0], 0.1)
    tcp_m = base_from_tcp(home, cell)[:3, 3]
    still, turning = log.rows
    assert still[1:8] == [0.0] * 7
    assert turning[:3] == [2.0, round(np.degrees(0.5), 1), 0.0]
    assert turning[7] == pytest.approx(1e3 * 0.5 * np.hypot(*tcp_m[:2]), abs=0.2)
    assert still[8] == turning[8] == pytest.approx(1e3 * tcp_m[2], abs=0.06)
    assert turning[9] == pytest.approx(1e3 * Guard(cell).clearance(home, 0.1).distance_m, abs=0.06)


def test_no_peak_is_lost_between_two_rows_and_the_rows_end() -> None:
    cell = load_cell()
    home, log = np.asarray(cell.home_joints), MotionLog(cell)
    for number, speed in enumerate((0.1, -0.9, 0.2)):
        log.add(5.0 + 0.01 * number, home, [speed, 0, 0, 0, 0, 0], 0.1)
    assert [row[1] for row in log.rows] == [round(np.degrees(-0.9), 1)]
    log.add(5.02, home, [3.0, 0, 0, 0, 0, 0], 0.1)  # repeated by a cell that stands
    assert len(log.rows) == 1
    for number in range(MOST_ROWS + 20):
        log.add(6.0 + 1.01 * BUCKET_S * number, home, np.zeros(6), 0.1)
    assert len(log.rows) == MOST_ROWS
    log.add(0.5, home, np.zeros(6), 0.1)  # a graph that was started anew
    assert [row[0] for row in log.rows] == [0.5]


def test_the_timeline_has_stages_without_gaps_and_the_events_between_them() -> None:
    now_s = 100.0
    timeline = Timeline(lambda: now_s)
    assert timeline.content()["trial_id"] == ""
    timeline.event("stop", "before any trial")
    for stage, step, lasts_s in (
        ("perception", 0, 1.0),
        ("decision", 0, 0.5),
        ("decision", 0, 0.5),
        ("execution", 1, 2),
    ):
        timeline.stage("t.1", stage, step)
        now_s += lasts_s
    timeline.event("stop", "pressed")
    shown = timeline.content()
    assert (shown["trial_id"], shown["running"], shown["elapsed_s"]) == ("t.1", True, 4.0)
    assert [(one["stage"], one["start_s"], one["end_s"]) for one in shown["stages"]] == [
        ("perception", 0.0, 1.0),
        ("decision", 1.0, 2.0),
        ("execution", 2.0, None),
    ]
    assert shown["events"] == [{"kind": "stop", "text": "pressed", "at_s": 4.0}]
    timeline.end()
    now_s += 1
    timeline.result("t.0", "of the trial before")
    timeline.result("t.1", "SUCCESS")
    now_s += 50
    timeline.event("stop", "after the trial")
    assert timeline.content()["elapsed_s"] == 4.0
    assert [(one["text"], one["at_s"]) for one in timeline.content()["events"]] == [("pressed", 4.0), ("SUCCESS", 4.0)]
    assert timeline.content()["stages"][-1]["end_s"] == 4.0
    timeline.stage("t.2", "perception")
    assert (timeline.content()["trial_id"], timeline.content()["events"]) == ("t.2", [])
    for step in range(2 * MOST_EVENTS):
        timeline.stage("t.2", "execution", step)
        timeline.event("action", "a chunk")
    assert len(timeline.content()["stages"]) == len(timeline.content()["events"]) == MOST_EVENTS
