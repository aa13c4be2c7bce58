"""`merton model serve`: a class behind a protocol, called by our adapters, other clients, and with arbitrary bytes."""

from __future__ import annotations

import ast
import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from merton.cognition.models.openai_chat import ChatSettings, OpenAIChat, png_url
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.openpi import OpenPi, OpenPiSettings
from merton.decision.models.openvla_rest import ActSettings, OpenVlaRest
from merton.errors import (
    INFRASTRUCTURE_ERRORS,
    INFRASTRUCTURE_NAMES,
    InfrastructureError,
    InvalidActionError,
    InvalidAnswerError,
    LoadingError,
)
from merton.models import serving
from merton.models.remote import Patience
from patience import stretched, until
from wire import LIMIT_S, observation

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
pytest.importorskip("websockets", reason="the extra `remote` is not installed")
pytest.importorskip("msgpack", reason="the extra `remote` is not installed")

QUICK = Patience(deadline_s=LIMIT_S, pause_s=0.01)
IMAGE = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)


class Noisy:
    """Acts at random, from the seed; fails on request."""

    width = 7

    def act(self, observation: dict[str, Any], noise_seed: int | None = None) -> Any:
        prompt = observation.get("prompt") or observation["instruction"]
        if prompt == "fail":
            raise RuntimeError("out of memory")
        if prompt == "none":
            return None
        return np.random.default_rng(noise_seed).uniform(0, 0.01, (2, self.width))


class OutOfMemoryError(RuntimeError):
    """As torch's, whose base it has."""


LACKS = {
    "import": ImportError("error while loading shared libraries: libcudart.so.12: cannot open shared object file"),
    "file": FileNotFoundError(2, "no such file", "/weights"),
    "memory": MemoryError(),
    "gpu": OutOfMemoryError("CUDA out of memory"),
}


class Lacks:
    """Something is missing where it runs: the instruction or question says what."""

    def act(self, observation: dict[str, Any]) -> Any:
        raise LACKS[observation.get("prompt") or observation["instruction"]]

    def answer(self, images: list[Any], question: str, max_tokens: int) -> Any:
        raise LACKS[question]


class Gives:
    """Gives no text, or one that was cut off."""

    def answer(self, images: list[Any], question: str, max_tokens: int) -> Any:
        return {"none": None, "dict": {"text": "B"}, "cut": SimpleNamespace(text="The red", truncated=True)}[question]


class NoisyDroid(Noisy):
    """The same with the columns of DROID, a name, and a dictionary as reply."""

    width = 8
    metadata = {"name": "noisy"}  # noqa: RUF012

    def act(self, observation: dict[str, Any], noise_seed: int | None = None) -> Any:
        return {"actions": super().act(observation, noise_seed), "plan": "at random"}


class Still:
    """Knows no seed."""

    def act(self, observation: dict[str, Any]) -> Any:
        return [0.0] * 7


class Says:
    """Answers with its arguments and the mean of the images."""

    def answer(self, images: list[Any], question: str, max_tokens: int, noise_seed: int | None = None) -> Any:
        if question == "fail":
            raise RuntimeError("out of memory")
        means = " ".join(f"{image.mean():.3f}" for image in images)
        return SimpleNamespace(text=f"{question} {means} {max_tokens} {noise_seed}")


@contextmanager
def served(model: type, protocol: str, names: tuple[str, ...] = ()) -> Iterator[int]:
    """The port at which a class of this file is served."""
    running = serving.server(f"{__name__}:{model.__name__}", protocol, port=0, names=names)
    threading.Thread(target=running.run, daemon=True).start()
    try:
        yield running.port
    finally:
        running.close()


def openpi(port: int) -> OpenPi:
    values = OpenPiSettings(url=f"ws://127.0.0.1:{port}", patience=QUICK)
    return OpenPi("pi", values, CONVENTIONS["droid"], ("side", "wrist"), "joints")


def act_policy(port: int, instruction: str = "{instruction}", noise_seed: bool = True) -> OpenVlaRest:
    values = ActSettings(url=f"http://127.0.0.1:{port}", patience=QUICK, noise_seed=noise_seed)
    return OpenVlaRest("vla", values, CONVENTIONS["bridge"], ("top",), "", instruction)


def chat(port: int) -> OpenAIChat:
    return OpenAIChat("says", ChatSettings(url=f"http://127.0.0.1:{port}/v1", model="Says", seed=5, patience=QUICK))


def test_openpi_the_same_seed_gives_the_same_noise() -> None:
    with served(NoisyDroid, "openpi") as port:
        policy = openpi(port)
        chunks = [policy.act(observation("side", "wrist", seed=seed)).deltas for seed in (1, 1, 2)]
        assert policy.honours_noise_seed is True
        assert np.array_equal(chunks[0], chunks[1])
        assert not np.array_equal(chunks[0], chunks[2])
        raw = np.random.default_rng(1).uniform(0, 0.01, (2, 8))
        assert np.array_equal(chunks[0], CONVENTIONS["droid"].chunk(raw).deltas), "nothing is lost on the wire"


def test_act_the_same_seed_gives_the_same_noise() -> None:
    with served(Noisy, "act") as port:
        chunks = [act_policy(port).act(observation("top", seed=seed)).deltas for seed in (1, 1, 2)]
        assert np.array_equal(chunks[0], chunks[1])
        assert not np.array_equal(chunks[0], chunks[2])
    with served(Still, "act") as port:
        assert act_policy(port).act(observation("top")).deltas.shape == (1, 7)


@pytest.mark.parametrize("failing", ["fail", "none"])
def test_a_failure_of_the_model_is_reported_in_the_protocols_form_and_serving_continues(failing: str) -> None:
    with served(NoisyDroid, "openpi") as port:
        policy = openpi(port)
        policy._prompt = failing
        with pytest.raises(InvalidActionError, match="out of memory" if failing == "fail" else ""):
            policy.act(observation("side", "wrist"))
        policy._prompt = "go"
        assert policy.act(observation("side", "wrist")).deltas.shape == (2, 7)
    with served(Noisy, "act") as port:
        with pytest.raises(InvalidActionError):
            act_policy(port, failing).act(observation("top"))
        assert act_policy(port).act(observation("top")).deltas.shape == (2, 7)


@pytest.mark.parametrize("lack", LACKS)
def test_what_is_missing_where_the_model_runs_is_no_outcome_of_the_model(lack: str) -> None:
    """The rule of merton.errors, over the wire and by Merton's own clients."""
    kind = type(LACKS[lack]).__name__
    with served(Lacks, "chat") as port, pytest.raises(InfrastructureError, match=f"HTTP 503.*{kind}") as ended:
        chat(port).answer([IMAGE], lack)
    assert not isinstance(ended.value, LoadingError)
    with served(Lacks, "act") as port, pytest.raises(InfrastructureError, match=f"HTTP 503.*{kind}") as ended:
        act_policy(port, lack).act(observation("top"))
    assert not isinstance(ended.value, LoadingError)
    with served(Lacks, "openpi") as port:
        policy = openpi(port)
        policy._prompt = lack
        with pytest.raises(InfrastructureError, match=f"1011.*infrastructure_error {kind}"):
            policy.act(observation("side", "wrist"))


def test_the_infrastructure_is_the_same_as_mertons() -> None:
    assert serving.INFRASTRUCTURE_NAMES >= INFRASTRUCTURE_NAMES
    assert {kind.__name__ for kind in INFRASTRUCTURE_ERRORS} <= {
        kind.__name__ for kind in serving.INFRASTRUCTURE_ERRORS
    } | serving.INFRASTRUCTURE_NAMES


def test_only_a_text_is_sent_as_an_answer_and_one_that_was_cut_off_says_so() -> None:
    with served(Gives, "chat") as port:
        for given, kind in (("none", "NoneType"), ("dict", "dict")):
            with pytest.raises(InvalidAnswerError, match=f"no text but of type {kind}"):
                chat(port).answer([IMAGE], given)
        answer = chat(port).answer([IMAGE], "cut")
    assert (answer.text, answer.truncated) == ("The red", True)


def test_chat_with_our_adapter() -> None:
    with served(Says, "chat") as port:
        model = chat(port)
        answer = model.answer([IMAGE, IMAGE[:12]], "what?", 9)
        assert answer.text == f"what? {IMAGE.mean():.3f} {IMAGE[:12].mean():.3f} 9 5"
        with pytest.raises(InvalidAnswerError, match="out of memory"):
            model.answer([IMAGE], "fail")
        assert [finding.ok for finding in model.check()] == [True, True]


def test_chat_with_openais_own_client() -> None:
    openai = pytest.importorskip("openai", reason="the openai package is not installed")
    content = [{"type": "image_url", "image_url": {"url": png_url(IMAGE)}}, {"type": "text", "text": "what?"}]
    with (
        served(Says, "chat") as port,
        openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", timeout=LIMIT_S) as client,
    ):
        assert [model.id for model in client.models.list()] == ["Says"]
        asked = {"model": "Says", "max_tokens": 9, "seed": 5, "temperature": 0}
        done = client.chat.completions.create(messages=[{"role": "user", "content": content}], **asked)
        assert done.choices[0].message.content == f"what? {IMAGE.mean():.3f} 9 5"
        assert done.choices[0].finish_reason == "stop"
        with pytest.raises(openai.InternalServerError, match="out of memory"):
            client.chat.completions.create(messages=[{"role": "user", "content": "fail"}], **asked)
        content[0] = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/secret.png"}}
        with pytest.raises(openai.BadRequestError, match="others are not fetched"):
            client.chat.completions.create(messages=[{"role": "user", "content": content}], **asked)


def test_act_with_json_numpy() -> None:
    json_numpy = pytest.importorskip("json_numpy", reason="json-numpy is not installed")
    with served(Still, "act") as port:
        status, reply = post(port, "/act", json_numpy.dumps({"image": IMAGE, "instruction": "go"}).encode())
        assert (status, json_numpy.loads(reply).tolist()) == (200, [0.0] * 7)
        encoded = json.dumps({"encoded": json_numpy.dumps({"image": IMAGE, "instruction": "go"})})
        assert post(port, "/act", encoded.encode()) == (status, reply)
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    assert json.dumps(serving.to_json(array)) == json_numpy.dumps(array)


def test_openpi_with_its_own_client() -> None:
    reason = "openpi-client pins numpy<2; install it with --no-deps to run this"
    client = pytest.importorskip("openpi_client.websocket_client_policy", reason=reason)
    with served(NoisyDroid, "openpi") as port:
        policy = client.WebsocketClientPolicy("127.0.0.1", port)
        assert policy.get_server_metadata() == {"name": "noisy", "noise_seed": True}
        reply = policy.infer({"prompt": "go", "noise_seed": 3, "observation/image": IMAGE})
        assert np.array_equal(reply["actions"], np.random.default_rng(3).uniform(0, 0.01, (2, 8)))
        assert reply["server_timing"]["infer_ms"] > 0
        with pytest.raises(RuntimeError, match="out of memory"):
            policy.infer({"prompt": "fail"})


def test_the_bytes_of_openpi() -> None:
    # recorded with openpi-client 0.1.2: msgpack_numpy.packb(value)
    value = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.float64(0.5),
        "prompt": "pick",
        "n": {"x": [np.uint8(7), 3]},
    }
    recorded = (
        "84a16184c40b5f5f6e6461727261795f5fc3c40464617461c418000000000000803f0000004000004040000080400000a040c405647479"
        "7065a33c6634c4057368617065920203a162cb3fe0000000000000a670726f6d7074a47069636ba16e81a1789283c40d5f5f6e7067656e"
        "657269635f5fc3c4046461746107c4056474797065a37c753103"
    )
    assert serving.pack(value).hex() == recorded
    back = serving.unpack(bytes.fromhex(recorded))
    assert np.array_equal(back["a"], value["a"])
    assert back["a"].dtype == np.float32
    assert back["n"] == {"x": [7, 3]}


DTYPES = st.sampled_from(["|u1", "|b1", "<i2", ">i4", "<u8", "<f2", "<f4", ">f8"])
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@given(DTYPES, SHAPES, st.integers(0, 2**32 - 1))
def test_arrays_survive_both_codecs(dtype: str, shape: tuple[int, ...], seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 2, shape).astype(dtype)
    for back in (
        serving.unpack(serving.pack(array)),
        serving.from_json(json.loads(json.dumps(serving.to_json(array)))),
    ):
        assert (back.dtype.str, back.shape, back.tolist()) == (array.dtype.str, shape, array.tolist())
        assert back.flags.writeable


@given(st.binary(max_size=60))
def test_arbitrary_bytes_do_not_crash_the_codec(data: bytes) -> None:
    with suppress(ValueError):
        serving.unpack(data)


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [("|O", [1], b"12345678"), ("<f8", [2], b"12345678"), ("<f8", [-1], b"12345678"), ("<f8", "1", b"12345678"),
     ("<f8", [2**40, 2**40], b""), ("nonsense", [1], b"1"), (["<f8"], [1], b"12345678"), ("|V8", [1], b"12345678")],
)  # fmt: skip
def test_arrays_of_anything_but_numbers_are_refused(dtype: Any, shape: Any, data: bytes) -> None:
    import msgpack

    with pytest.raises(ValueError, match=r"arrays? "):
        serving.unpack(msgpack.packb({b"__ndarray__": True, b"data": data, b"dtype": dtype, b"shape": shape}))
    with pytest.raises(ValueError, match="do not travel"):
        serving.pack(np.array([object()]))
    with pytest.raises(ValueError, match="do not travel"):
        serving.to_json(np.array(["text"]))


def post(port: int, path: str, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body of a reply."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    try:
        connection.request("POST", path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[" * 100_000, 400),
        ("/v1/chat/completions", b"[1]", 400),
        ("/v1/chat/completions", b'{"messages": []}', 400),
        ("/v1/chat/completions", b'{"messages": [{"content": [{"type": "audio"}]}]}', 400),
        ("/v1/chat/completions", b'{"messages": [{"content": "hi"}], "max_tokens": "many"}', 400),
        (
            "/v1/chat/completions",
            b'{"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}',
            400,
        ),
        (
            "/v1/chat/completions",
            b'{"messages": [{"content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,\xff"}}]}]}',
            400,
        ),
        ("/v1/completions", b"{}", 404),
    ],
)
def test_requests_in_another_form_are_refused(path: str, body: bytes, status: int) -> None:
    with served(Says, "chat") as port:
        got, reply = post(port, path, body)
        assert got == status
        assert json.loads(reply)["error"]["type"] == "invalid_request_error"
        assert post(port, "/v1/chat/completions", b'{"messages": [{"content": "hi"}]}')[0] == 200


def test_health_sizes_and_half_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_BYTES", 1000)
    for model, protocol in ((Says, "chat"), (Noisy, "act"), (NoisyDroid, "openpi")):
        with served(model, protocol) as port:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            connection.close()
    with served(Still, "act") as port:
        assert post(port, "/act", b"0" * 1001)[0] == 413
        assert post(port, "/act", b"[1]")[0] == 400
        assert post(port, "/act", b'{"image": {"__numpy__": "!"}}')[0] == 400
        for deep in (b'{"image": ' + b"[" * 900 + b"]" * 900 + b"}", json.dumps({"encoded": "[" * 900_000}).encode()):
            monkeypatch.setattr(serving, "MAX_BYTES", 10**6)
            got, reply = post(port, "/act", deep)
            assert (got, b"too deep" in reply) == (400, True)
        monkeypatch.setattr(serving, "MAX_BYTES", 1000)
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as half:
            half.sendall(b"POST /act HTTP/1.1\r\nContent-Length: 50\r\n\r\n{")
            half.shutdown(socket.SHUT_WR)
            assert half.recv(100) == b""
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as endless:
            endless.sendall(b"POST /act HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            assert b"411" in endless.recv(100)
        assert post(port, "/act", b'{"image": 1, "instruction": "go"}')[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1:1"}, 200),
        ({"Host": "[::1]:1"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "rebound.example:8000"}, 421),
        ({"Host": "rebound.example", "Origin": "http://rebound.example", "Sec-Fetch-Site": "same-origin"}, 421),
        ({"Origin": "https://page.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:1", "Host": "127.0.0.1:1"}, 403),
        ({"Origin": "http://127.0.0.1:1", "Host": "127.0.0.1:1"}, 200),
        ({"Content-Type": "text/plain;charset=UTF-8"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({"Content-Type": "application/vnd.api+json"}, 200),
    ],
)
def test_no_page_of_another_site_uses_the_model(headers: dict[str, str], status: int) -> None:
    """As `merton.web.access`: a browser names the page's host, or says on whose behalf it sends (Fetch metadata)."""
    observation = b'{"image": 1, "instruction": "go"}'
    with served(Still, "act") as port:
        assert post(port, "/act", observation, headers)[0] == status
    if not any(name == "Content-Type" for name in headers):
        with served(NoisyDroid, "openpi") as port:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
            connection.request("GET", "/healthz", headers=headers)
            assert connection.getresponse().status == (403 if status == 421 else status)
            connection.close()


def test_a_server_in_a_container_goes_by_the_names_that_it_is_given() -> None:
    observation = b'{"image": 1, "instruction": "go"}'
    with served(Still, "act", ("Model", "vla.lab")) as port:
        for host, status in (("model:8000", 200), ("vla.lab", 200), ("other", 421)):
            got, reply = post(port, "/act", observation, {"Host": host})
            assert got == status
        assert b"--name" in reply
    with served(NoisyDroid, "openpi", ("model",)) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        connection.request("GET", "/healthz", headers={"Host": "model:8000"})
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"POST /a", b"POST /act HTTP/1.1\r\nContent-Le", b"X"])
@pytest.mark.parametrize(("model", "protocol"), [(Still, "act"), (NoisyDroid, "openpi")])
def test_half_sent_requests_hold_few_threads(
    monkeypatch: pytest.MonkeyPatch, model: type, protocol: str, sent: bytes
) -> None:
    monkeypatch.setattr(serving, "MOST_WAITING", 8)
    before = threading.active_count()
    with served(model, protocol) as port, ExitStack() as stack:
        for _ in range(60):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S))
            one.sendall(sent)
        until(lambda: threading.active_count() <= before + 8 + 4)
        if protocol == "act":
            assert post(port, "/act", b'{"image": 1, "instruction": "go"}')[0] == 200
        else:
            assert openpi(port).act(observation("side", "wrist")).deltas.size


def test_a_request_that_does_not_arrive_is_cut_off_and_an_idle_client_is_served_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served(Still, "act") as port:
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        for _ in range(3):
            kept.request("POST", "/act", b'{"image": 1, "instruction": "go"}')
            assert kept.getresponse().read()
        monkeypatch.setattr(serving, "IDLE_S", 0.3)
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as slow:
            slow.sendall(b"POST /act HTTP/1.1\r\nContent-Length: 50\r\n\r\n{")
            assert slow.recv(100) == b"", "closed by the limit of the whole request, not of one byte"
        kept.close()


def test_roboarenas_messages_are_understood() -> None:
    from websockets.sync.client import connect

    with served(NoisyDroid, "openpi") as port, connect(f"ws://127.0.0.1:{port}", compression=None) as connection:
        assert serving.unpack(connection.recv(LIMIT_S))["noise_seed"] is True
        connection.send(serving.pack({"endpoint": "reset"}))
        assert connection.recv(LIMIT_S) == "reset successful"
        connection.send(serving.pack({"endpoint": "infer", "prompt": "go"}))
        assert serving.unpack(connection.recv(LIMIT_S))["actions"].shape == (2, 8)
        connection.send("text")
        assert "an observation is binary" in str(connection.recv(LIMIT_S))


@pytest.mark.parametrize(
    ("path", "protocol", "said"),
    [
        ("nowhere:Model", "act", "cannot import nowhere:Model: there is no module 'nowhere' here"),
        ("json:Model", "act", "module 'json' has no 'Model'"),
        ("json", "act", "name the model as MODULE:CLASS, got 'json'"),
        (f"{__name__}:Says", "act", r"has no method act\(\), which the protocol act calls"),
        (f"{__name__}:Still", "chat", r"has no method answer\(\), which the protocol chat calls"),
        (f"{__name__}:Still", "grpc", "unknown protocol 'grpc'; choose one of: openpi, act, chat"),
        ("subprocess:Popen", "act", "cannot build subprocess:Popen: TypeError"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused(path: str, protocol: str, said: str) -> None:
    with pytest.raises(serving.ServingError, match=said):
        serving.server(path, protocol, port=0)


def test_a_port_that_is_taken() -> None:
    for protocol, model in (("act", "Still"), ("openpi", "Still")):
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(serving.ServingError, match="cannot listen on"),
        ):
            serving.server(f"{__name__}:{model}", protocol, port=taken.getsockname()[1])


MINE = """
class Mine:
    def act(self, observation):
        return [0.0] * 7
"""


@pytest.mark.parametrize("protocol", ["act", "openpi"])
@pytest.mark.parametrize("how", ["merton model serve", "the file alone"])
def test_the_command_and_the_file_alone(tmp_path: Path, how: str, protocol: str) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    if how == "merton model serve":
        start = [sys.executable, "-m", "merton", "model", "serve"]
    else:
        (tmp_path / "serving.py").write_bytes(Path(serving.__file__).read_bytes())
        start = [sys.executable, "serving.py"]
    command = [*start, "mine:Mine", "--protocol", protocol, "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()  # the test's own time limit bounds this
        assert "mine:Mine serves" in line, process.stderr.read() if process.stderr else ""
        port = int(line.rpartition(":")[2])
        assert "127.0.0.1" in line
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S):  # an idle client does not keep it alive
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT_S) == 130
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def test_a_mistake_on_the_command_line_is_one_line() -> None:
    command = [sys.executable, "-m", "merton", "model", "serve", "nowhere:M", "--protocol", "act"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=stretched(60), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "merton: cannot import nowhere:M: there is no module 'nowhere' here\n"


def test_the_file_has_the_syntax_and_imports_of_old_pythons() -> None:
    source = Path(serving.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    imported = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    imported |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    outside = {module.split(".")[0] for module in imported} - set(sys.stdlib_module_names)
    assert outside == {"numpy"}
