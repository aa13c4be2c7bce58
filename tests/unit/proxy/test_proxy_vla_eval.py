"""The proxy between vla-eval's protocol and a server of it, written here from its form: the package is not needed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from proxied import proxied, websocket_server
from test_proxy_protocols import as_png, raw_array, vla_eval
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection

from merton.proxy.protocols.vla_eval import VlaEval

PICTURE = np.random.default_rng(1).integers(0, 256, (32, 32, 3), np.uint8)
CONDITIONS = {"distortions": ("max_darken",), "levels": (0, 2, 5)}


class Chunks:
    """A server with a buffer of three actions for each session, as vla-eval's own; episodes begin it anew."""

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []
        self.messages: list[bytes] = []
        self.asked: list[float] = []

    def __call__(self, connection: ServerConnection) -> None:
        buffer: list[float] = []
        with suppress(ConnectionClosed):
            for data in connection:
                assert isinstance(data, bytes)
                message = msgpack.unpackb(data)
                kind, seq = message["type"], message["seq"]
                self.messages.append(data)
                if kind == "hello":
                    connection.send(vla_eval("hello", {"protocol_version": 1}, seq))
                elif kind == "episode_start":
                    self.starts.append(message["payload"])
                    buffer = []
                elif kind == "observation":
                    if message["payload"].get("fail"):
                        connection.send(vla_eval("error", {"error": "observation_failed: no"}, seq))
                        continue
                    if not buffer:
                        mean = VlaEval().message(data).pictures["front"].read().mean()
                        self.asked.append(mean)
                        buffer = [mean, mean + 1, mean + 2]
                    action = raw_array(np.array([buffer.pop(0)], np.float32))
                    connection.send(vla_eval("action", {"actions": action}, seq))


class Harness:
    """vla-eval's order of messages over one connection."""

    def __init__(self, url: str) -> None:
        self.connection = connect(url, compression=None, max_size=None).__enter__()
        self.seq = 0
        self.sent: list[bytes] = []
        self.send("hello", {"harness_version": "0.8.0", "protocol_version": 1})
        self.answer()

    def send(self, kind: str, payload: dict[str, Any]) -> None:
        self.seq += 1
        self.sent.append(vla_eval(kind, payload, self.seq))
        self.connection.send(self.sent[-1])

    def answer(self) -> dict[str, Any]:
        return msgpack.unpackb(self.connection.recv())

    def episode(self, scene: int, steps: int = 5, success: bool | None = True, **begin: Any) -> list[float]:
        self.send("episode_start", {"task": {"name": "open it", "suite": "mt", "episode_idx": scene}, **begin})
        actions = []
        for step in range(steps):
            images = {"front": as_png(np.roll(PICTURE, step + scene, axis=0))}
            self.send("observation", {"images": images, "task_description": "open it"})
            answer = self.answer()
            assert answer["seq"] == self.seq
            actions.append(float(np.frombuffer(answer["payload"]["actions"]["data"], np.float32)[0]))
        if success is not None:
            self.send("episode_end", {"metrics": {"success": success}, "steps": steps})
        return actions


def test_conditions_scenes_and_successes_are_the_harness_own(tmp_path: Path) -> None:
    server = Chunks()
    told = {}
    with websocket_server(server) as url, proxied(tmp_path, url, "vla-eval", **CONDITIONS) as proxy:
        harness = Harness(proxy.url)
        for turn in range(3):
            for scene in range(3):
                told[turn, scene] = (turn + scene) % 2 == 0
                harness.episode(scene, success=told[turn, scene])
        harness.connection.close()
    turns = list(proxy.folder.episodes)
    assert [past.success for past in turns] == [told[turn, scene] for turn in range(3) for scene in range(3)]
    assert [past.case.distortion for past in turns[:3]] == ["reference"] * 3
    assert {past.case.level for past in turns[3:] if past.case.seed == 1} == {2, 5}
    assert {past.begin["name"] for past in turns} == {"mt: open it"}
    assert proxy.folder.pairs.kept
    assert not proxy.folder.pairs.broken


def test_actions_of_a_policy_with_a_buffer_are_those_without_a_proxy(tmp_path: Path) -> None:
    with websocket_server(Chunks()) as url:
        alone = Harness(url)
        wanted = alone.episode(2, 7)
        alone.connection.close()
    server = Chunks()
    with websocket_server(server) as url, proxied(tmp_path, url, "vla-eval", clean_every=1, **CONDITIONS) as proxy:
        harness = Harness(proxy.url)
        assert harness.episode(2, 7) == wanted
        assert server.messages == harness.sent[:-1] or server.messages == harness.sent
        dark = harness.episode(2, 7)
        harness.connection.close()
    assert len(set(np.diff(dark[:3]))) == 1  # the buffer of the first session, undisturbed
    assert dark[0] != wanted[0]
    past = proxy.folder.episodes[1]
    assert [rows[1][0][0] for rows in past.end["answers"]] == wanted  # the second session's buffer went along


def test_a_second_session_hears_the_beginning_without_the_harness_record(tmp_path: Path) -> None:
    server = Chunks()
    recording = {"db_path": "/tmp/x.sqlite", "sid": "s", "eid": "e", "eval_id": "v"}
    with websocket_server(server) as url, proxied(tmp_path, url, "vla-eval", **CONDITIONS) as proxy:
        harness = Harness(proxy.url)
        for _ in range(2):
            harness.episode(0, 1, recording=recording)
        harness.connection.close()
    assert [start.get("recording") for start in server.starts] == [recording, recording, None]


def test_an_error_and_a_harness_that_leaves_are_episodes_without_an_end(tmp_path: Path) -> None:
    with websocket_server(Chunks()) as url, proxied(tmp_path, url, "vla-eval") as proxy:
        harness = Harness(proxy.url)
        harness.send("episode_start", {"task": {"name": "open it", "episode_idx": 0}})
        harness.send("observation", {"images": {"front": as_png(PICTURE)}, "fail": True})
        assert harness.answer()["type"] == "error"
        harness.episode(1, 1, success=None)
        harness.connection.close()
    first, second = proxy.folder.episodes
    assert (first.success, first.end["why"]) == (None, "the policy failed: observation_failed: no")
    assert (second.success, second.end["why"]) == (None, "the harness left before the episode's end")


def test_observations_after_a_reconnection_have_no_episode_and_pass(tmp_path: Path) -> None:
    server = Chunks()
    with websocket_server(server) as url, proxied(tmp_path, url, "vla-eval", **CONDITIONS) as proxy:
        harness = Harness(proxy.url)
        harness.send("observation", {"images": {"front": as_png(PICTURE)}})
        assert harness.answer()["type"] == "action"
        harness.connection.close()
    assert server.messages == harness.sent
    assert proxy.folder.counts.begun == 0
    assert proxy.keeper.counts["outside"] == 1
