"""What is read from messages of the three protocols, and that nothing but a picture changes in them."""

from __future__ import annotations

import json
from typing import Any

import cv2
import json_numpy
import msgpack
import numpy as np
import pytest

from merton.errors import UnknownNameError
from merton.models.serving import pack, to_json
from merton.proxy.pictures import pieces
from merton.proxy.protocols import PROTOCOLS, protocol_named
from merton.proxy.protocols.base import Kind, Message

RNG = np.random.default_rng(0)
PICTURE = RNG.integers(0, 256, (20, 30, 3), np.uint8)
OTHER = RNG.integers(0, 256, (20, 30, 3), np.uint8)


def vla_eval(kind: str, payload: dict[str, Any], seq: int = 4) -> bytes:
    """A message in the form of vla-eval 0.8 (vla_eval/protocol/messages.py)."""
    return msgpack.packb({"type": kind, "payload": payload, "seq": seq, "timestamp": 1.5}, use_bin_type=True)


def as_png(picture: Any, form: str = "png") -> dict[str, Any]:
    """As vla_eval/protocol/image_codec.py."""
    data = cv2.imencode(f".{form}", picture[:, :, ::-1])[1].tobytes()
    return {"__image__": True, "format": form, "data": data, "shape": list(picture.shape)}


def raw_array(array: Any) -> dict[str, Any]:
    """As vla_eval/protocol/numpy_codec.py."""
    return {"__ndarray__": True, "data": array.tobytes(), "dtype": array.dtype.str, "shape": list(array.shape)}


def shown(name: str, data: bytes, camera: str, picture: Any) -> bytes:
    protocol = PROTOCOLS[name]
    pictures = protocol.message(data).pictures
    clean = {one: pictures[one].read() for one in pictures}
    return protocol.shown(data, pieces(pictures, clean, clean | {camera: picture}))


def observation(chw: bool) -> dict[str, Any]:
    one = np.ascontiguousarray(PICTURE.transpose(2, 0, 1)) if chw else PICTURE
    return {
        "observation/image": one,
        "observation/wrist_image": np.full_like(one, 9),
        "observation/state": np.arange(8, dtype=np.float32),
        "mask": np.ones((20, 30), np.uint8),
        "prompt": "pick up the bowl",
    }


@pytest.mark.parametrize("chw", [False, True], ids=["rows first", "channels first"])
def test_openpi_names_cameras_and_keeps_all_else(chw: bool) -> None:
    content = observation(chw)
    message = PROTOCOLS["openpi"].message(pack(content))
    assert (message.kind, message.instruction, set(message.pictures)) == (
        Kind.OBSERVATION,
        "pick up the bowl",
        {"image", "wrist_image"},
    )
    np.testing.assert_array_equal(message.pictures["image"].read(), PICTURE)
    wanted = content | {"observation/image": OTHER.transpose(2, 0, 1) if chw else OTHER}
    assert shown("openpi", pack(content), "image", OTHER) == pack(wanted)


def test_cameras_below_one_key_and_of_equal_names() -> None:
    nested = {"images": {"cam_high": PICTURE, "cam_low": PICTURE}, "history": {"cam_high": PICTURE}}
    assert set(PROTOCOLS["openpi"].message(pack(nested)).pictures) == {"images.cam_high", "cam_low", "history.cam_high"}


@pytest.mark.parametrize(
    "array",
    [
        PICTURE.astype(np.float32) / 255,
        np.zeros((4, 20, 30, 3), np.uint8),
        np.zeros((20, 30), np.uint8),
        np.zeros((20, 30, 4), np.uint8),
        np.zeros((3, 3, 3), np.uint8),
        b"\xff\xd8\xff\xe0 JPEG",
    ],
    ids=["float", "several", "grey", "with transparency", "matrix", "JPEG"],
)
def test_other_arrays_are_no_pictures(array: Any) -> None:
    for name, data in (
        ("openpi", pack({"image": array})),
        ("vla-eval", vla_eval("observation", {"images": {"a": None}})),
    ):
        message = PROTOCOLS[name].message(data)
        assert message.kind is Kind.OBSERVATION
        assert not message.pictures


def test_openpi_replies() -> None:
    protocol = PROTOCOLS["openpi"]
    np.testing.assert_array_equal(
        protocol.reply(pack({"actions": np.ones((5, 7), np.float32)})).action, np.ones((5, 7))
    )
    assert protocol.reply("Traceback\n  ...\nValueError: no image\n").error == "ValueError: no image"
    assert protocol.reply(pack({"actions": {"left": np.ones(3)}})).action is None
    assert protocol.reply(b"\xc1").error


@pytest.mark.parametrize("form", ["png", "raw"])
def test_vla_eval_pictures_are_found_and_replaced(form: str) -> None:
    def payload(picture: Any) -> dict[str, Any]:
        return {
            "images": {"agentview": as_png(picture) if form == "png" else raw_array(picture)},
            "states": raw_array(np.zeros(9, np.float32)),
            "task_description": "open the drawer",
        }

    message = PROTOCOLS["vla-eval"].message(vla_eval("observation", payload(PICTURE)))
    assert (message.kind, message.number, message.instruction) == (Kind.OBSERVATION, 4, "open the drawer")
    np.testing.assert_array_equal(message.pictures["agentview"].read(), PICTURE)
    changed = shown("vla-eval", vla_eval("observation", payload(PICTURE)), "agentview", OTHER)
    assert changed == vla_eval("observation", payload(OTHER))


def test_vla_eval_jpeg_stays_jpeg() -> None:
    smooth = np.tile(np.linspace(0, 255, 32, dtype=np.uint8)[:, None, None], (1, 32, 3))
    data = vla_eval("observation", {"images": {"a": as_png(smooth, "jpeg")}})
    changed = msgpack.unpackb(shown("vla-eval", data, "a", 255 - smooth))["payload"]["images"]["a"]
    assert changed["format"] == "jpeg"
    assert changed["data"][:2] == b"\xff\xd8"
    decoded = cv2.imdecode(np.frombuffer(changed["data"], np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    assert np.abs(decoded.astype(int) - (255 - smooth)).mean() < 2


def test_vla_eval_episodes_begin_and_end() -> None:
    protocol = PROTOCOLS["vla-eval"]
    task = {"name": "press the button", "suite": "mt1", "episode_idx": 7}
    begin = protocol.message(vla_eval("episode_start", {"task": task}))
    assert (begin.kind, begin.task, begin.scene) == (Kind.BEGIN, "mt1: press the button", 7)
    unnamed = protocol.message(vla_eval("episode_start", {"task": {"id": 3, "episode_idx": 0}}))
    assert (unnamed.task, unnamed.scene) == ('{"id": 3}', 0)
    for success in (True, False, None):
        metrics = {} if success is None else {"success": success}
        end = protocol.message(vla_eval("episode_end", {"metrics": metrics, "steps": 3}))
        assert (end.kind, end.success) == (Kind.END, success)
    assert protocol.message(vla_eval("hello", {"protocol_version": 1})).kind is Kind.OTHER


def test_vla_eval_replies() -> None:
    protocol = PROTOCOLS["vla-eval"]
    reply = protocol.reply(vla_eval("action", {"actions": raw_array(np.arange(7, dtype=np.float32))}))
    assert (reply.is_answer, reply.number) == (True, 4)
    np.testing.assert_array_equal(reply.action, np.arange(7)[None])
    error = protocol.reply(vla_eval("error", {"error": "observation_failed: ValueError: no"}))
    assert (error.is_answer, error.error) == (True, "observation_failed: ValueError: no")
    assert not protocol.reply(vla_eval("hello", {})).is_answer


def test_a_second_session_writes_nothing_into_the_harness_record() -> None:
    begin = vla_eval("episode_start", {"task": {"name": "a"}, "recording": {"db_path": "/x.sqlite", "sid": "s"}})
    sent = msgpack.unpackb(PROTOCOLS["vla-eval"].for_shadow(begin))
    assert sent == {**msgpack.unpackb(begin), "payload": {"task": {"name": "a"}}}


@pytest.mark.parametrize("double", [False, True], ids=["plain", "encoded"])
@pytest.mark.parametrize("own", [False, True], ids=["json-numpy", "Merton"])
def test_act_pictures_are_found_and_replaced(double: bool, own: bool) -> None:
    def body(picture: Any) -> bytes:
        content = {"instruction": "wipe", "n": [1.50, 2], "image": picture, "wrist": PICTURE, "state": np.zeros(3)}
        text = json.dumps(to_json(content)) if own else json_numpy.dumps(content)
        return json.dumps({"encoded": text}).encode() if double else text.encode()

    message = PROTOCOLS["act"].message(body(PICTURE))
    assert (message.kind, message.instruction, set(message.pictures)) == (Kind.OBSERVATION, "wipe", {"image", "wrist"})
    np.testing.assert_array_equal(message.pictures["image"].read(), PICTURE)
    assert shown("act", body(PICTURE), "image", OTHER) == body(OTHER)


def test_act_pictures_written_with_escapes_are_said_not_guessed() -> None:
    text = json.dumps(to_json({"image": PICTURE})).replace("/", "\\/")
    message = PROTOCOLS["act"].message(text.encode())
    assert not message.pictures
    assert "escapes" in message.problem


def test_act_replies() -> None:
    protocol = PROTOCOLS["act"]
    array = np.arange(7.0)
    for body in (json_numpy.dumps(array), json.dumps(json_numpy.dumps(array)), json.dumps({"actions": to_json(array)})):
        np.testing.assert_array_equal(protocol.reply(body.encode()).action, array[None])
    assert protocol.reply(b'"error"').error == "error"
    assert protocol.reply(b"{").error


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("data", [b"", b"\xc1", b"{", b"[]", b"\x81\xa1a\x01", b"null", bytes(range(256))])
def test_a_malformed_message_has_a_reason_or_no_pictures(name: str, data: bytes) -> None:
    message = protocol_named(name).message(data)
    assert isinstance(message, Message)
    assert message.problem or not message.pictures
    protocol_named(name).reply(data)


def test_an_unknown_protocol() -> None:
    with pytest.raises(UnknownNameError, match="vla-eval"):
        protocol_named("grpc")
