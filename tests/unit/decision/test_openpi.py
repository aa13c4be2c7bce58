"""openpi's adapter against servers that behave and servers that do not."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.images import resize_with_padding
from merton.decision.models.openpi import DIALECTS, OpenPi, OpenPiSettings, state_of
from merton.decision.models.rows import row_policy
from merton.errors import InfrastructureError, InputError, InvalidActionError
from merton.models.remote import Patience
from merton.models.serving import pack, unpack
from wire import LIMIT_S, Wire, closed_port, half_closed, http_server, observation, replying, silent, websocket_server

pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
pytest.importorskip("websockets", reason="the extra `remote` is not installed")
pytest.importorskip("msgpack", reason="the extra `remote` is not installed")

QUICK = Patience(deadline_s=LIMIT_S, pause_s=0.01)
VELOCITIES = np.zeros((10, 8), np.float32)
BRIDGE = np.array([0.01, -0.02, 0.03, 0.0, 0.0, 0.1, 1.0])


def openpi(wire: Wire, dialect: Any = "droid", convention: str = "droid", **chosen: Any) -> OpenPi:
    cameras = chosen.pop("cameras", ("side", "wrist"))
    state = chosen.pop("state", "joints")
    values = OpenPiSettings(url=wire.ws, dialect=dialect, patience=chosen.pop("patience", QUICK))
    return OpenPi("pi", values, CONVENTIONS[convention], cameras, state, "{instruction}")


def acting(actions: Any) -> Any:
    return lambda message, wire: pack({"actions": actions, "server_timing": {"infer_ms": 1.0}})


def test_a_droid_servers_observation_and_actions() -> None:
    velocities = VELOCITIES.copy()
    velocities[:, 3] = 0.5
    with websocket_server(pack({}), acting(velocities)) as wire:
        policy, seen = openpi(wire), observation("side", "wrist")
        chunk = policy.act(seen)
        assert policy.honours_noise_seed is False
        assert policy.act(seen).latency_s > 0
    sent = unpack(wire.requests[0])
    assert set(sent) == {*DIALECTS["droid"].images, *DIALECTS["droid"].state, "prompt"}
    assert sent["prompt"] == "pick up the red cube"
    assert sent["observation/joint_position"] == pytest.approx(CONVENTIONS["droid"].rest[:7])
    assert sent["observation/gripper_position"] == pytest.approx([0.0])
    for key, camera in zip(DIALECTS["droid"].images, ("side", "wrist"), strict=True):
        assert np.array_equal(sent[key], resize_with_padding(seen.views[camera].color, 224, 224))
    expected = CONVENTIONS["droid"].chunk(velocities, model="pi")
    assert np.array_equal(chunk.deltas, expected.deltas)
    assert (chunk.step_s, chunk.frame, chunk.model, chunk.done) == (expected.step_s, "base_link", "pi", False)
    assert len(wire.requests) == 2


def test_the_noise_seed_goes_to_servers_that_honour_it() -> None:
    with websocket_server(pack({"noise_seed": True}), acting(VELOCITIES)) as wire:
        policy = openpi(wire)
        policy.act(observation("side", "wrist", seed=2**64 - 1))
        assert policy.honours_noise_seed is True
    assert unpack(wire.requests[0])["noise_seed"] == 2**64 - 1


def test_other_dialects() -> None:
    seen = observation("top", "wrist", "side")
    joints = np.tile(seen.joints_rad, (5, 1))
    with websocket_server(pack({}), acting(np.c_[joints, np.zeros(5)])) as wire:
        chunk = openpi(wire, "ur5", "pi0_base", cameras=("top", "wrist")).act(seen)
    sent = unpack(wire.requests[0])
    assert set(sent) == {"base_rgb", "wrist_rgb", "joints", "gripper", "prompt"}
    assert sent["joints"] == pytest.approx(seen.joints_rad)
    assert sent["gripper"] == pytest.approx([0.0]), "this family counts 0 as open"
    assert chunk.deltas[:, :6] == pytest.approx(np.zeros((5, 6)), abs=1e-9), "to stay where it is means no motion"

    with websocket_server(pack({}), acting(np.tile(CONVENTIONS["aloha"].rest, (50, 1)))) as wire:
        openpi(wire, "aloha", "aloha", cameras=("top",)).act(seen)
    sent = unpack(wire.requests[0])
    assert set(sent) == {"images", "state", "prompt"}
    assert {key: image.shape for key, image in sent["images"].items()} == {"cam_high": (3, 224, 224)}
    assert sent["state"].shape == (14,)

    with websocket_server(pack({}), acting(np.tile(BRIDGE, (10, 1)))) as wire:
        openpi(wire, "libero", "libero", cameras=("top", "wrist"), state="tool").act(seen)
    sent = unpack(wire.requests[0])
    position, turn = seen.base_from_tcp[:3, 3], [np.pi / np.sqrt(2), -np.pi / np.sqrt(2), 0.0]
    assert sent["observation/state"][:3] == pytest.approx(position)
    assert np.abs(sent["observation/state"][3:6]) == pytest.approx(np.abs(turn)), "a half turn, of either sign"
    assert sent["observation/state"][6:] == pytest.approx([0.04, -0.04])


def test_a_dialect_written_out_in_the_entry() -> None:
    own = {"images": ("cam",), "size_px": None, "state": {"q": (0, 3)}, "prompt": "text"}
    with websocket_server(pack({}), acting(VELOCITIES)) as wire:
        openpi(wire, own, cameras=("side",)).act(observation("side"))
    sent = unpack(wire.requests[0])
    assert set(sent) == {"cam", "q", "text"}
    assert sent["cam"].shape == (240, 424, 3)
    assert sent["q"].shape == (3,)


def roboarena_server(message: bytes, wire: Wire) -> Any:
    asked = unpack(message)
    return "reset successful" if asked["endpoint"] == "reset" else pack({"actions": VELOCITIES})


def test_roboarenas_variant() -> None:
    greeting = {"image_resolution": [180, 320], "action_space": "joint_velocity", "n_external_cameras": 1}
    with websocket_server(pack(greeting), roboarena_server) as wire:
        openpi(wire, "roboarena").act(observation("side", "wrist"))
    reset, infer = map(unpack, wire.requests)
    assert reset == {"endpoint": "reset"}
    assert infer["endpoint"] == "infer"
    assert infer["observation/exterior_image_0_left"].shape == (180, 320, 3)

    for wrong, said in (({"action_space": "joint_position"}, "joint_position"), ({"image_resolution": [0, 9]}, "size")):
        with (
            websocket_server(pack({**greeting, **wrong}), roboarena_server) as wire,
            pytest.raises(InfrastructureError, match=said),
        ):
            openpi(wire, "roboarena").act(observation("side", "wrist"))


def test_pictures_of_a_data_set_have_the_size_that_a_server_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with websocket_server(pack({"image_resolution": [180, 320]}), roboarena_server) as wire:
        settings = {"url": wire.ws, "dialect": "roboarena"}
        entry = PolicyEntry(name="mine", description="", adapter="openpi", cameras=("side",), settings=settings,
                            convention="libero_env")  # fmt: skip
        monkeypatch.setitem(POLICIES._entries, "mine", entry)
        side, state = np.zeros((48, 64, 3), np.uint8), np.zeros(8, np.float32)
        row_policy("mine", ("side",)).ask({"side": side, "observation.state": state, "prompt": "pick"})
    assert unpack(wire.requests[1])["observation/exterior_image_0_left"].shape == (180, 320, 3)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (pack({"actions": np.full((10, 8), np.nan)}), "not finite"),
        (pack({"actions": np.zeros((10, 3))}), "rows of 8 numbers"),
        (pack({"actions": np.zeros((0, 8))}), "rows of 8 numbers"),
        (pack({"actions": [1, 2]}), "no array"),
        (pack({"plan": 1}), "no array"),
        (pack([1]), "no array"),
        (b"\xc1\xff", "cannot be read"),
        (b"", "cannot be read"),
        (b"\x81\xc4\x0b__ndarray__\xc3", "cannot be read"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'prompt'\n", "KeyError: 'prompt'"),
    ],
    ids=[
        "NaN",
        "width",
        "empty",
        "list",
        "no key",
        "no dictionary",
        "garbage",
        "nothing",
        "half an array",
        "traceback",
    ],
)
def test_a_policys_own_failure_is_an_invalid_action(reply: Any, said: str) -> None:
    with websocket_server(pack({}), lambda message, wire: reply, acting(VELOCITIES)) as wire:
        policy = openpi(wire)
        with pytest.raises(InvalidActionError, match=said):
            policy.act(observation("side", "wrist"))
        assert len(wire.requests) == 1, "a model's failure is not tried again"
        policy.act(observation("side", "wrist"))


def test_a_late_reply_is_not_taken_for_the_next_one() -> None:
    release = threading.Event()

    def late(message: bytes, wire: Wire) -> Any:
        if len(wire.requests) == 1:
            assert release.wait(LIMIT_S)
            return pack({"actions": np.ones((10, 8))})
        return pack({"actions": VELOCITIES})

    with websocket_server(pack({}), late) as wire:
        policy = openpi(wire, patience=Patience(deadline_s=0.5))
        with pytest.raises(InfrastructureError, match="within the deadline"):
            policy.act(observation("side", "wrist"))
        release.set()
        policy._server.patience = QUICK
        assert np.array_equal(policy.act(observation("side", "wrist")).deltas[:, :3], np.zeros((10, 3)))


def test_faults_of_a_policy_server() -> None:
    with websocket_server(pack({}), lambda message, wire: None, acting(VELOCITIES)) as wire:  # cut once, then well
        openpi(wire).act(observation("side", "wrist"))
        assert len(wire.requests) == 2
    with (
        websocket_server(pack({}), lambda message, wire: None) as wire,
        pytest.raises(InfrastructureError, match="3 times ConnectionClosed"),
    ):
        openpi(wire).act(observation("side", "wrist"))
    for greeting in ("hello", b"\xc1", pack([1])):
        with websocket_server(greeting, acting(VELOCITIES)) as wire, pytest.raises(InfrastructureError, match="greet"):
            openpi(wire).act(observation("side", "wrist"))
    for step in (replying(503, "warming up"), replying(200, "no websocket"), half_closed):
        with http_server(step) as wire, pytest.raises(InfrastructureError, match="3 times Invalid"):
            openpi(wire).act(observation("side", "wrist"))
    with http_server(silent) as wire, pytest.raises(InfrastructureError, match="within the deadline"):
        openpi(wire, patience=Patience(deadline_s=0.3)).act(observation("side", "wrist"))
    with pytest.raises(InfrastructureError, match="3 times ConnectionRefusedError"):
        openpi(Wire(closed_port())).act(observation("side", "wrist"))


def test_several_threads_share_one_connection() -> None:
    def echo(message: bytes, wire: Wire) -> Any:
        return pack({"actions": np.full((1, 8), unpack(message)["noise_seed"] / 100)})

    with websocket_server(pack({"noise_seed": True}), echo) as wire:
        policy = openpi(wire)
        grippers: dict[int, float] = {}

        def ask(seed: int) -> None:
            grippers[seed] = float(policy.act(observation("side", "wrist", seed=seed)).deltas[0, 6])

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        assert grippers == {seed: pytest.approx(1 - seed / 100) for seed in range(8)}


def test_invalid_settings_and_observations_are_refused() -> None:
    wire = Wire(1)
    with pytest.raises(InputError, match="needs camera 'side'"):
        openpi(wire).act(observation("wrist"))
    with pytest.raises(
        InputError, match=r"unknown dialect 'dorid'; did you mean 'droid'\? choose one of: aloha, droid"
    ):
        openpi(wire, "dorid")
    with pytest.raises(InputError, match="takes 1 to 2 cameras, got 3"):
        openpi(wire, cameras=("top", "side", "wrist"))
    assert state_of(observation(), "tool", CONVENTIONS["bridge"]).shape == (8,)
    assert state_of(observation(), "none", CONVENTIONS["bridge"]).shape == (0,)


def test_from_the_catalogue_and_checked() -> None:
    base: dict[str, Any] = {"description": "", "convention": "droid", "state": "joints"}
    with websocket_server(pack({"noise_seed": True}), acting(VELOCITIES)) as wire:
        entry = PolicyEntry(
            name="pi",
            adapter="openpi",
            cameras=("side", "wrist"),
            settings={"url": wire.ws, "dialect": "roboarena"},
            **base,
        )
        policy = OpenPi.from_entry(entry)
        assert [one.ok for one in policy.check()] == [True, True]
        plain = entry.model_copy(update={"settings": {"url": "ws://127.0.0.1:1", "patience": {"attempts": 1}}})
        (finding,) = OpenPi.from_entry(plain).check()
        assert not finding.ok
        with pytest.raises(InputError, match="the settings of pi: "):
            OpenPi.from_entry(entry.model_copy(update={"settings": {"port": 1}}))
        with pytest.raises(InputError, match="needs a convention"):
            OpenPi.from_entry(entry.model_copy(update={"convention": ""}))


SIZES = [(240, 424), (480, 640), (720, 1280), (90, 100), (301, 77), (1200, 40), (224, 224)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("into", [(224, 224), (180, 320), (37, 91)])
def test_images_are_resized_as_openpis_clients_do_to_the_bit(size: tuple[int, int], into: tuple[int, int]) -> None:
    """By openpi_client.image_tools: Pillow's BILINEAR, int() of both lengths, and half of the rest before."""
    from PIL import Image

    image: NDArray[np.uint8] = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    ratio = max(size[0] / into[0], size[1] / into[1])
    height, width = int(size[0] / ratio), int(size[1] / ratio)
    theirs = Image.new("RGB", into[::-1])
    small = Image.fromarray(image).resize((width, height), Image.Resampling.BILINEAR)
    theirs.paste(small, (int((into[1] - width) / 2), int((into[0] - height) / 2)))
    assert np.array_equal(resize_with_padding(image, *into), np.asarray(theirs))


def test_resizing_is_that_of_openpis_own_package() -> None:
    theirs = pytest.importorskip("openpi_client.image_tools", reason="openpi-client is not installed")
    for size in SIZES:
        image = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
        assert np.array_equal(resize_with_padding(image, 224, 224), theirs.resize_with_pad(image, 224, 224))
