"""The proxy between openpi's protocol and its servers: bytes, sessions, closes, ends of episodes."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from proxied import Proxied, proxied, websocket_server
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection

from merton.episodes.shown import EpisodePictures, pictures_seed
from merton.errors import InfrastructureError
from merton.models.serving import pack, unpack
from merton.results.records import Outcome, TestCase
from patience import until

PICTURE = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
BLUR = {"distortions": ("gaussian_blur",), "levels": (0, 4)}


def observation(step: int = 0, **more: Any) -> bytes:
    picture = np.roll(PICTURE, step, axis=1)
    return pack({"image": picture, "state": np.arange(7, dtype=np.float32), "prompt": "pick", **more})


class Counting:
    """An upstream that keeps all messages, and counts them per session, as a policy with a memory would."""

    def __init__(self) -> None:
        self.sessions: list[list[bytes]] = []
        self.lock = threading.Lock()

    def __call__(self, connection: ServerConnection) -> None:
        with self.lock:
            mine: list[bytes] = []
            self.sessions.append(mine)
        connection.send(pack({"policy": "counting"}))
        with suppress(ConnectionClosed):
            for message in connection:
                assert isinstance(message, bytes)
                mine.append(message)
                seen = unpack(message)["image"].mean()
                connection.send(pack({"actions": np.array([[len(mine), seen]])}))

    @property
    def messages(self) -> list[bytes]:
        return [one for mine in self.sessions for one in mine]


def episode(url: str, steps: int = 3, query: str = "?task=pick&scene=1") -> list[Any]:
    """Through openpi's protocol, as a harness does; gives the rows of the answers."""
    with connect(f"{url}/{query}", compression=None, max_size=None) as connection:
        assert unpack(connection.recv()) == {"policy": "counting"}
        rows = []
        for step in range(steps):
            connection.send(observation(step))
            rows.append(unpack(connection.recv())["actions"][0].tolist())
        return rows


def call(proxy: Proxied, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
    request = urllib.request.Request(proxy.http + path, data, fields, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_undistorted_episodes_pass_the_very_bytes(tmp_path: Path) -> None:
    upstream = Counting()
    with websocket_server(upstream) as url, proxied(tmp_path, url, "openpi") as proxy:
        rows = episode(proxy.url, 4)
    assert upstream.messages == [observation(step) for step in range(4)]
    assert [row[0] for row in rows] == [1, 2, 3, 4]
    assert proxy.folder.latency["n"] == 4


def test_an_ending_that_cannot_be_written_down_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> bool:
        raise InfrastructureError("the disk is full")

    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi") as proxy:
        monkeypatch.setattr(proxy.keeper.run, "ended", refuse)
        episode(proxy.url)
        episode(proxy.url)  # the one before ends with its beginning
        until(lambda: proxy.keeper.counts["unwritten"] == 1)
    assert "something of an episode could not be written down: the disk is full" in proxy.said


def test_a_distorted_episode_shows_what_the_design_says_and_nothing_else(tmp_path: Path) -> None:
    upstream = Counting()
    with websocket_server(upstream) as url, proxied(tmp_path, url, "openpi", seed=5, **BLUR) as proxy:
        episode(proxy.url)
        episode(proxy.url)
    first, second, shadow = upstream.sessions
    seed = pictures_seed(5, TestCase("pick", 1, "gaussian_blur", 4))
    pictures = EpisodePictures("gaussian_blur", 4, seed)
    for step in range(3):
        clean = unpack(first[step])
        shown = pictures.show(step, "image", clean["image"])
        assert not np.array_equal(shown, clean["image"])
        assert second[step] == pack(clean | {"image": shown})
    assert shadow == first[:1]


def test_the_first_session_of_a_policy_with_a_memory_answers_as_without_a_second_one(tmp_path: Path) -> None:
    for every, asked in ((0, [1]), (1, [3]), (2, [1, 1])):
        upstream = Counting()
        runs = tmp_path / str(every)
        with websocket_server(upstream) as url, proxied(runs, url, "openpi", clean_every=every, **BLUR) as proxy:
            clean = episode(proxy.url)
            shown = episode(proxy.url)
        assert [row[0] for row in shown] == [row[0] for row in clean] == [1, 2, 3]
        assert sorted(len(mine) for mine in upstream.sessions) == sorted([3, 3, *asked])
        answers = next(past for past in proxy.folder.episodes if past.condition.level).end["answers"]
        reference = [row[1][0][1] for row in answers]
        assert reference == [clean[step][1] for step, *_ in answers]


def test_a_second_session_that_fails_is_a_note_and_the_episode_goes_on(tmp_path: Path) -> None:
    connections: list[int] = []

    def once(connection: ServerConnection) -> None:
        connections.append(1)
        connection.send(pack({"policy": "counting"}))
        if len(connections) > 2:  # harness twice, then the second session
            connection.close(1013, "one session at a time")
            return
        with suppress(ConnectionClosed):
            for message in connection:
                connection.send(pack({"actions": np.array([[0.0, unpack(message)["image"].mean()]])}))

    with websocket_server(once) as url, proxied(tmp_path, url, "openpi", **BLUR) as proxy:
        episode(proxy.url)
        episode(proxy.url)
        assert call(proxy, "/merton/episode/end", {"success": True})[0] == 200
    (past,) = (past for past in proxy.folder.episodes if past.condition.level)
    assert past.success is True
    assert "1013 one session at a time" in past.end["notes"][0]


def test_the_scene_of_an_episode_is_its_first_picture_unless_the_harness_says_one(tmp_path: Path) -> None:
    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi", **BLUR) as proxy:
        for _ in range(2):
            episode(proxy.url, query="")
        call(proxy, "/merton/episode", {"task": "Pick the cup", "scene": 7})
        episode(proxy.url, query="")
        call(proxy, "/merton/episode", {"scene": "kitchen/7", "condition": {"distortion": "jpeg", "level": 2}})
        episode(proxy.url, query="")
        episode(proxy.url, query="?scene=9&distortion=jpeg&level=1&agent=other")
    cases = [past.case for past in proxy.folder.episodes]
    assert cases[0].seed == cases[1].seed
    assert [(case.distortion, case.level) for case in cases] == [
        ("reference", 0),
        ("gaussian_blur", 4),
        ("reference", 0),
        ("jpeg", 2),
        ("jpeg", 1),
    ]
    assert [past.begin["name"] for past in proxy.folder.episodes] == ["pick", "pick", "Pick the cup", "pick", "pick"]
    assert cases[2].seed == 7
    assert [past.agent for past in proxy.folder.episodes][-1] == "other"


def test_an_end_is_told_by_a_call_and_is_on_the_disk_with_its_answer(tmp_path: Path) -> None:
    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi") as proxy:
        assert call(proxy, "/merton/episode/end", {"success": True})[0] == 409
        episode(proxy.url)
        assert call(proxy, "/merton/episode/end", {"success": True}) == (200, {"ended": True, "success": True})
        assert proxy.folder.episodes[0].success is True
        assert call(proxy, "/merton/episode/end", {"success": True})[0] == 409
        episode(proxy.url, query="?scene=2")
        episode(proxy.url, query="?scene=3")
    assert [past.success for past in proxy.folder.episodes] == [True, None, None]
    assert [record.outcome for record in proxy.folder.records()] == [Outcome.SUCCESS, Outcome.FAILURE, Outcome.FAILURE]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/merton/episode", {"scene": 1}, {"Host": "evil.example"}, 421),
        ("/merton/episode", {"scene": 1}, {"Origin": "http://evil.example"}, 403),
        ("/merton/episode", {"scene": 1}, {"Sec_Fetch_Site": "cross-site"}, 403),
        ("/merton/episode", {"scene": 1}, {"Content_Type": "text/plain"}, 415),
        ("/merton/episode", b"{", {}, 422),
        ("/merton/episode", [], {}, 422),
        ("/merton/episode", {"scenes": 1}, {}, 422),
        ("/merton/episode", {"scene": True}, {}, 422),
        ("/merton/episode", {"condition": {"distortion": "blurr", "level": 1}}, {}, 422),
        ("/merton/episode", {"condition": {"distortion": "jpeg"}}, {}, 422),
        ("/merton/episode", {"condition": {"distortion": "depth_holes", "level": 1}}, {}, 422),
        ("/merton/episode/end", {"success": 1}, {}, 422),
        ("/merton/episodes", {}, {}, 404),
        ("/merton/episode", b'"' + b"x" * 70000 + b'"', {}, 413),
    ],
)
def test_calls_are_guarded_and_refused_with_a_sentence(
    tmp_path: Path, path: str, body: Any, headers: dict[str, str], status: int
) -> None:
    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi") as proxy:
        found, answer = call(proxy, path, body, **headers)
        assert found == status
        assert answer.get("detail") or answer


def test_a_websocket_from_a_page_of_another_site_is_refused(tmp_path: Path) -> None:
    upstream = Counting()
    with websocket_server(upstream) as url, proxied(tmp_path, url, "openpi") as proxy:
        with pytest.raises(InvalidStatus) as refused, connect(proxy.url, origin="http://evil.example"):
            pass
        assert refused.value.response.status_code == 403
    assert not upstream.sessions


def test_pings_texts_close_codes_and_reasons_are_the_servers_own(tmp_path: Path) -> None:
    def failing(connection: ServerConnection) -> None:
        connection.send(pack({}))
        connection.ping(b"are you there").wait(10)
        connection.recv()
        connection.send("Traceback\nValueError: no wrist image")
        connection.close(1011, "Internal server error. Traceback included in previous frame.")

    with websocket_server(failing, ping_interval=None) as url, proxied(tmp_path, url, "openpi") as proxy:
        with connect(f"{proxy.url}/?scene=1", compression=None) as connection:
            connection.recv()
            assert connection.ping().wait(10)
            connection.send(observation())
            assert connection.recv() == "Traceback\nValueError: no wrist image"
            with pytest.raises(ConnectionClosed) as closed:
                connection.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1011
        assert closed.value.rcvd.reason == "Internal server error. Traceback included in previous frame."
    (past,) = proxy.folder.episodes
    assert past.success is None
    assert past.end["why"] == "the policy failed: ValueError: no wrist image"


def test_a_dead_policy_server_is_no_outcome_and_its_condition_is_given_again(tmp_path: Path) -> None:
    def dying(connection: ServerConnection) -> None:
        connection.send(pack({}))
        connection.recv()
        connection.socket.shutdown(socket.SHUT_RDWR)

    with websocket_server(dying) as url, proxied(tmp_path, url, "openpi", **BLUR) as proxy:
        for _ in range(2):
            with connect(f"{proxy.url}/?task=pick&scene=1", compression=None) as connection:
                connection.recv()
                connection.send(observation())
                with pytest.raises(ConnectionClosed) as closed:
                    connection.recv()
            assert closed.value.rcvd is None
    assert proxy.folder.counts.lost == 2
    assert not proxy.folder.records()
    assert {past.case.distortion for past in proxy.folder.episodes} == {"reference"}


def test_the_port_is_closed_while_the_policy_server_accepts_no_connection(tmp_path: Path) -> None:
    def refused(proxy: Proxied) -> bool:
        try:
            connect(proxy.url, compression=None, open_timeout=5).__enter__().close()
        except ConnectionRefusedError:
            return True
        except (OSError, EOFError, ConnectionClosed, InvalidStatus) as _:
            return False
        return False

    with websocket_server(Counting()) as url:
        port = int(url.rpartition(":")[2])
        with proxied(tmp_path, url, "openpi") as proxy:
            assert len(episode(proxy.url)) == 3
            _ = proxy
    with proxied(tmp_path / "other", f"ws://127.0.0.1:{port}", "openpi") as proxy:
        assert "waiting" in proxy.said[0]
        assert refused(proxy)
        with websocket_server(Counting(), port):
            until(lambda: any("openpi at" in line for line in proxy.said), 10)
            assert len(episode(proxy.url)) == 3


def test_malformed_and_unseen_messages_pass_and_are_said_once(tmp_path: Path) -> None:
    seen: list[Any] = []

    def echoing(connection: ServerConnection) -> None:
        connection.send(pack({"policy": "counting"}))
        with suppress(ConnectionClosed):
            for message in connection:
                seen.append(message)
                connection.send(pack({"actions": np.zeros((1, 2))}))

    sent = [b"\xc1 no msgpack", pack({"image": b"JPEG", "prompt": "x"}), pack({"image": b"JPEG"}), b"\xc1", "a text"]
    with (
        websocket_server(echoing) as url,
        proxied(tmp_path, url, "openpi", **BLUR) as proxy,
        connect(f"{proxy.url}/?scene=1", compression=None) as connection,
    ):
        connection.recv()
        for message in sent:
            connection.send(message)
            connection.recv()
    assert seen == sent
    assert proxy.keeper.counts["malformed"] == 2
    assert proxy.keeper.counts["unseen"] == 2
    assert sum("no picture that is understood" in line for line in proxy.said) == 1


def test_an_episode_that_could_not_be_distorted_is_said_and_is_no_trial_of_its_condition(tmp_path: Path) -> None:
    design = {**BLUR, "distort": {"cameras": ("wrist",)}}
    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi", **design) as proxy:
        for _ in range(2):
            episode(proxy.url)
        assert call(proxy, "/merton/episode/end", {"success": True})[0] == 200
    (broken,) = proxy.folder.pairs.broken
    assert broken.why == "no picture of it was distorted: no picture of wrist was sent, only of image"
    assert f"an episode of gaussian_blur 4 counts in no pair: {broken.why}" in proxy.said


def test_an_address_may_ask_for_a_fault_of_time(tmp_path: Path) -> None:
    with websocket_server(Counting()) as url, proxied(tmp_path, url, "openpi") as proxy:
        episode(proxy.url, query="?task=pick&scene=1&distortion=frozen&level=5")
        with pytest.raises(InvalidStatus) as refused, connect(f"{proxy.url}/?distortion=depth_lag&level=1"):
            pass
        assert b"'depth_lag' acts on depth" in refused.value.response.body
    assert [str(past.condition) for past in proxy.folder.episodes] == ["frozen 5"]


def test_observations_that_do_not_wait_for_answers_are_answered_and_recorded_in_order(tmp_path: Path) -> None:
    upstream = Counting()
    with websocket_server(upstream) as url, proxied(tmp_path, url, "openpi", clean_every=1, **BLUR) as proxy:
        for _ in range(2):
            with connect(f"{proxy.url}/?task=pick&scene=1", compression=None, max_size=None) as connection:
                connection.recv()
                for step in range(6):
                    connection.send(observation(step))
                rows = [unpack(connection.recv())["actions"][0].tolist() for _ in range(6)]
            assert [row[0] for row in rows] == [1, 2, 3, 4, 5, 6]
    for past in proxy.folder.episodes:
        assert past.end is not None
        assert [row[0] for row in past.end["answers"]] == list(range(6))
        assert [row[2][0][0] for row in past.end["answers"]] == [1, 2, 3, 4, 5, 6]
    assert proxy.folder.counts.recorded == 2


def test_fragments_subprotocols_headers_and_paths_pass(tmp_path: Path) -> None:
    requests: list[Any] = []

    def telling(connection: ServerConnection) -> None:
        requests.append(connection.request)
        connection.send(pack({}))
        with suppress(ConnectionClosed):
            message = connection.recv()
            connection.send(pack({"actions": np.zeros((1, 2)), "sha": hashlib.sha256(message).hexdigest()}))

    with websocket_server(telling, subprotocols=["openpi"]) as url, proxied(tmp_path, url, "openpi") as proxy:
        headers = {"Authorization": "Api-Key secret"}
        address = f"{proxy.url}/pi0?task=pick&scene=1&model=droid"
        with connect(address, subprotocols=["openpi"], additional_headers=headers) as connection:
            assert connection.subprotocol == "openpi"
            connection.recv()
            data = observation()
            connection.send([data[:100], data[100:5000], data[5000:]])
            assert unpack(connection.recv())["sha"] == hashlib.sha256(data).hexdigest()
    request = requests[0]
    assert request.path == "/pi0?model=droid"
    assert request.headers["Authorization"] == "Api-Key secret"
    assert request.headers["Host"] == url.removeprefix("ws://")


def test_health_of_the_policy_server_passes(tmp_path: Path) -> None:
    def answered(connection: ServerConnection, request: Any) -> Any:
        return connection.respond(200, "OK\n") if request.path == "/healthz" else None

    with (
        websocket_server(Counting(), process_request=answered) as url,
        proxied(tmp_path, url, "openpi") as proxy,
        urllib.request.urlopen(f"{proxy.http}/healthz", timeout=10) as response,
    ):
        assert response.read() == b"OK\n"
