"""The catalogue's policies of LIBERO in LIBERO: what each is shown and told, and what the simulator is given of it.

Against stand-ins of their servers and of LeRobot, which take what their own clients send: openpi's
examples/libero/main.py; run_libero_eval.py and deploy.py of OpenVLA (c8f03f4) and OpenVLA-OFT (213c5ff); LeRobot's
envs/libero.py and processor/env_processor.py (7427f31).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.models.images import prepared, resize_with_padding
from merton.decision.models.lerobot import LeRobot
from merton.decision.models.states import OF_LIBERO
from merton.models.serving import from_json, pack, to_json, unpack
from merton.world.geometry import transform
from merton.world.observation import CameraView, Observation
from merton.worlds.entry import HOSTED
from merton.worlds.hosted import libero_actions
from wire import Request, http_server, replying, websocket_server

SUITES = {"openvla-libero": "libero_10", "openvla-goal": "libero_goal", "openvla-libero-object": "libero_object",
          "openvla-libero-spatial": "libero_spatial"}  # fmt: skip
OFT = tuple(f"openvla-oft-libero-{suite}" for suite in ("spatial", "object", "goal", "10"))
OPENPI = ("pi0-libero", "pi05-libero")
ALL = (*SUITES, *OFT, *OPENPI, "smolvla-libero")
STATE = np.array([-0.05, 0.01, 1.17, 3.13, 0.02, -0.08, 0.0391, -0.0388])
"""As LIBERO gives it: the turn may be longer than pi, and the fingers are not quite alike."""
OFFICIAL = {-0.2: 1.0, 0.0: 1.0, 0.0039: 1.0, 0.49: 1.0, 0.51: -1.0, 0.996: -1.0, 1.0: -1.0, 1.3: -1.0}
"""A gripper's number of OpenVLA and OpenVLA-OFT, and what their scripts send to LIBERO for it: recorded from their own
`normalize_gripper_action(binarize=True)` and `invert_gripper_action`. At 0.5, which no token means, they send -0."""
ARM = np.array(
    [[0.3, -0.2, 1.7, 0.1, -0.4, -2.0], [-1.0, 1.0, 0.0, 1.0, -1.0, 0.004], [-3.0, 0.5, -0.5, 0.2, 0.3, 9.0]]
)


def picture(seed: int) -> NDArray[np.uint8]:
    """(256, 256, 3), as LIBERO renders them: smooth, with edges."""
    rows, columns = np.mgrid[:256, :256]
    color = np.stack([rows, columns, (rows * columns // 300 + 40 * seed) % 256], axis=2)
    color[60 + seed : 90, 100:140] = (200, 30, 10)
    return color.astype(np.uint8)


SEEN = Observation(
    views={
        name: CameraView(camera, picture(seed), None, None, None)
        for seed, (name, camera) in enumerate({"top": "agentview", "wrist": "wrist"}.items())
    },
    joints_rad=np.zeros(7),
    base_from_tcp=transform((-0.05, 0.01, 1.17)),
    gripper_open=0.97,
    instruction="pick up the black bowl and place it on the plate",
    extra={OF_LIBERO: STATE},
)
"""As the ports of LIBERO show it, under the names of the entries: `top` is what agentview sees."""


def there(name: str, **settings: Any) -> PolicyEntry:
    """An entry with the address of a server of this test."""
    entry = POLICIES[name]
    return entry.model_copy(update={"settings": {**entry.settings, **settings}})


def sent_to_libero(deltas: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([libero_actions.native(row) for row in deltas])


@pytest.mark.parametrize("name", ALL)
def test_an_entry_looks_through_liberos_cameras_and_in_the_cell_through_its_own(name: str) -> None:
    entry = POLICIES[name]
    in_libero = {"top": "agentview", "wrist": "wrist"}
    assert entry.among(("agentview", "wrist")).cameras == tuple(in_libero[camera] for camera in entry.cameras)
    assert entry.among(("wrist", "top", "side")).cameras == entry.cameras
    assert entry.means is not None
    assert entry.means.step_s == libero_actions.PERIOD_S
    assert (entry.action, entry.stateful) == ("tool_deltas", False)


@pytest.mark.parametrize("name", [*SUITES, *OFT])
def test_actions_of_openvla_are_sent_as_its_own_evaluation_sends_them(name: str) -> None:
    convention = POLICIES[name].means
    assert convention is not None
    for gripper, official in OFFICIAL.items():
        chunk = convention.chunk(np.column_stack((ARM, np.full(len(ARM), gripper))))
        expected = np.column_stack((np.clip(ARM, -1, 1), np.full(len(ARM), official)))  # the controller clips
        np.testing.assert_allclose(sent_to_libero(chunk.deltas), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", [*OPENPI, "smolvla-libero"])
def test_actions_of_pi_and_smolvla_are_sent_as_they_are(name: str) -> None:
    convention = POLICIES[name].means
    assert convention is not None
    for gripper in (-1.3, -1.0, -1e-6, 0.0, 1e-6, 0.2, 1.0, 1.4):
        raw = np.column_stack((ARM, np.full(len(ARM), gripper))).astype(np.float32)
        sent = sent_to_libero(convention.chunk(raw).deltas)
        np.testing.assert_allclose(sent, np.clip(raw.astype(np.float64), -1, 1), rtol=0, atol=1e-15)
        assert (np.sign(sent[:, 6]) == np.sign(raw[:, 6])).all(), "the gripper goes by the sign alone"


@pytest.mark.parametrize("name", SUITES)
def test_a_request_to_openvlas_server(name: str) -> None:
    """deploy.py resizes and does not crop, so the picture comes prepared as run_libero_eval.py prepares it."""
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    raw = np.append(ARM[1], 0.996)
    with http_server(replying(200, to_json(raw))) as wire:
        entry = there(name, url=wire.http)
        chunk = entry.build().act(SEEN)
    body = asked(wire.requests)
    assert set(body) == {"image", "instruction", "unnorm_key"}
    assert (body["instruction"], body["unnorm_key"]) == (SEEN.instruction, SUITES[name])
    assert body["image"].shape == (224, 224, 3)
    assert np.array_equal(body["image"], np.asarray(prepared(SEEN.views["top"].color, entry.image)))
    assert chunk.deltas.shape == (1, 7)


def asked(requests: list[Request]) -> dict[str, Any]:
    assert [(one.method, one.path) for one in requests] == [("POST", "/act")]
    return dict(from_json(requests[0].body))


def test_openvlas_picture_is_a_jpeg_resized_and_cropped_to_nine_tenths() -> None:
    """A mark at a known place: pixel x of 256 is at ((x + 0.5) 224 / 256 - 112) / sqrt(0.9) + 112 of 224."""
    preparation = POLICIES["openvla-libero"].image
    assert (preparation.jpeg, preparation.resize, preparation.crop) == (95, "lanczos", 0.9)
    color = np.full((256, 256, 3), 100, np.uint8)
    color[40:44, 200:204] = 255
    found = np.asarray(prepared(color, preparation)).astype(float)[..., 1] - 100
    weight = np.where(found > 40, found, 0)
    centre = [float((weight * axis).sum() / weight.sum()) + 0.5 for axis in np.mgrid[:224, :224]]
    expected = [(place * 224 / 256 - 112) / np.sqrt(0.9) + 112 for place in (42, 202)]
    assert centre == pytest.approx(expected, abs=0.25)
    noise = np.random.default_rng(0).integers(0, 256, (256, 256, 3), np.uint8)
    plain = preparation.model_copy(update={"jpeg": 0})
    differs = np.abs(np.asarray(prepared(noise, preparation)).astype(int) - np.asarray(prepared(noise, plain)))
    assert 2 < differs.mean() < 40, "colours are halved in resolution by a JPEG"


@pytest.mark.parametrize("name", OFT)
def test_a_request_to_the_server_of_openvla_oft(name: str) -> None:
    """Its deploy.py takes whole pictures under names of its own and the state, and gives a list of arrays."""
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    raw = np.column_stack((np.resize(ARM, (8, 6)), np.linspace(0, 1, 8)))
    with http_server(replying(200, [to_json(row) for row in raw])) as wire:
        assert POLICIES[name].settings["url"].endswith(":8777"), "as deploy.py listens"
        chunk = there(name, url=wire.http).build().act(SEEN)
    body = asked(wire.requests)
    assert set(body) == {"full_image", "wrist_image", "state", "instruction"}
    assert np.array_equal(body["full_image"], SEEN.views["top"].color)
    assert np.array_equal(body["wrist_image"], SEEN.views["wrist"].color)
    assert np.array_equal(body["state"], STATE)
    assert len(chunk.deltas) == 8, "all of them are carried out before it is asked again"


@pytest.mark.parametrize("name", OPENPI)
def test_a_request_to_openpis_server(name: str) -> None:
    pytest.importorskip("httpx2", reason="the extra `remote` is not installed")
    pytest.importorskip("websockets", reason="the extra `remote` is not installed")
    raw = np.resize(np.column_stack((ARM, [-1.0, 1.0, 0.3])), (50, 7)).astype(np.float32)
    with websocket_server(pack({}), lambda message, wire: pack({"actions": raw})) as wire:
        chunk = there(name, url=wire.ws).build().act(SEEN)
    sent = unpack(wire.requests[0])
    assert set(sent) == {"observation/image", "observation/wrist_image", "observation/state", "prompt"}
    for key, camera in (("observation/image", "top"), ("observation/wrist_image", "wrist")):
        assert np.array_equal(sent[key], resize_with_padding(SEEN.views[camera].color, 224, 224))
    assert np.array_equal(sent["observation/state"], STATE)
    assert sent["prompt"] == SEEN.instruction
    assert len(chunk.deltas) == 5, "replan_steps of examples/libero/main.py"
    np.testing.assert_allclose(sent_to_libero(chunk.deltas), np.clip(raw[:5].astype(float), -1, 1), rtol=0, atol=1e-15)


def test_smolvla_is_shown_both_pictures_and_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    shown: dict[str, Any] = {}

    def rows(self: LeRobot, batch: dict[str, Any], noise_seed: int) -> NDArray[np.float32]:
        shown.update(batch)
        return np.append(ARM[1], -1.0)[None].astype(np.float32)

    model = SimpleNamespace(config=SimpleNamespace(input_features={}))
    monkeypatch.setattr(LeRobot, "_ready", lambda self: (model, None, None))
    monkeypatch.setattr(LeRobot, "rows", rows)
    chunk = POLICIES["smolvla-libero"].build().act(SEEN)
    assert set(shown) == {"observation.images.image", "observation.images.image2", "observation.state", "task"}
    for key, camera in (("observation.images.image", "top"), ("observation.images.image2", "wrist")):
        expected = torch.from_numpy(SEEN.views[camera].color.copy()).permute(2, 0, 1)[None] / 255
        assert torch.equal(shown[key], expected)
    assert torch.equal(shown["observation.state"], torch.from_numpy(STATE.astype(np.float32))[None])
    assert shown["task"] == [SEEN.instruction]
    np.testing.assert_allclose(sent_to_libero(chunk.deltas), [[*np.clip(ARM[1], -1, 1), -1.0]], rtol=0, atol=1e-7)


def test_stand_ins_stand_in_for_cameras_of_the_entry() -> None:
    with pytest.raises(ValueError, match="stand_ins: 'side' is none of its cameras: top"):
        PolicyEntry(name="mine", description="", adapter="hold", cameras=("top",), stand_ins={"side": "agentview"})


def test_libero_gives_the_state_under_the_name_that_policies_look_for() -> None:
    """Where it does not, they would be told one that is made of tool and gripper."""
    assert f'"{OF_LIBERO}": ' in (HOSTED / "libero_room.py").read_text(encoding="utf-8")
