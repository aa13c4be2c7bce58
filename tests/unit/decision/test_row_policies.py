"""Policies by rows: a class, servers of two protocols, models of the catalogue, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.models.rows import fingerprint, key_of, row_policy
from merton.errors import InfrastructureError, InputError, InvalidActionError, UnknownNameError
from merton.models import serving

CAMERAS = ("observation.images.front", "observation.images.hand")
STATE = np.arange(8, dtype=np.float32)


class Told:
    """Answers with what it was told: the state, the middle of the first picture, the seed, and the words' length."""

    def act(self, observation: dict[str, Any], noise_seed: int | None = None) -> np.ndarray:
        """(2, 4) rows."""
        image = next(value for value in observation.values() if getattr(value, "ndim", 0) == 3)
        state = next((value for value in observation.values() if getattr(value, "ndim", 0) == 1), STATE)
        words = observation.get("prompt", observation.get("instruction", ""))
        row = [float(state[1]), float(image[len(image) // 2, image.shape[1] // 2, 0]), noise_seed or 0, len(words)]
        return np.array([row, row])


class Failing:
    """Fails as models do."""

    def act(self, observation: dict[str, Any]) -> Any:
        """No rows."""
        kind = observation["task"]
        if kind == "raise":
            raise RuntimeError("singular matrix")
        if kind == "missing":
            raise ModuleNotFoundError("No module named 'jax'")
        return {"nan": np.full((2, 3), np.nan), "words": "left", "none": np.zeros((0, 3))}[kind]


def observation(**further: Any) -> dict[str, Any]:
    pictures = {key: np.full((48, 64, 3), 40 + 50 * at, np.uint8) for at, key in enumerate(CAMERAS)}
    return {**pictures, "observation.state": STATE, "task": "push", "prompt": "push", **further}


@contextmanager
def served(protocol: str) -> Iterator[int]:
    """A server of `Told` on loopback; its port."""
    made = serving.server("test_row_policies:Told", protocol, port=0)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made.port
    finally:
        made.close()
        thread.join(5)


def test_a_class_gets_the_observation_as_it_is() -> None:
    rows = row_policy("test_row_policies:Told", CAMERAS).ask(observation(), 7)
    np.testing.assert_array_equal(rows, [[1, 40, 7, 4]] * 2)


@pytest.mark.parametrize(
    ("task", "error", "text"),
    [
        ("raise", InvalidActionError, "singular matrix"),
        ("missing", InfrastructureError, "jax"),
        ("nan", InvalidActionError, "finite"),
        ("words", InvalidActionError, "cannot be used"),
        ("none", InvalidActionError, "no rows"),
    ],
)
def test_no_action_is_an_outcome_and_a_missing_package_is_none(task: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        row_policy("test_row_policies:Failing", CAMERAS).ask(observation(task=task))


def test_a_server_of_openpi_gets_the_data_sets_own_names() -> None:
    pytest.importorskip("websockets", reason="websockets is not installed (the extra remote)")
    with served("openpi") as port:
        policy = row_policy(f"ws://127.0.0.1:{port}", CAMERAS)
        np.testing.assert_array_equal(policy.ask(observation(), 9), [[1, 40, 9, 4]] * 2)


def test_a_server_of_act_gets_the_first_camera() -> None:
    pytest.importorskip("httpx2", reason="httpx2 is not installed (the extra remote)")
    with served("act") as port:
        policy = row_policy(f"http://127.0.0.1:{port}", CAMERAS)
        np.testing.assert_array_equal(policy.ask(observation(), 9)[:, 1], [40, 40])


def test_a_model_of_the_catalogue_behind_openpi_speaks_its_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("websockets", reason="websockets is not installed (the extra remote)")
    with served("openpi") as port:
        settings = {"url": f"ws://127.0.0.1:{port}", "dialect": "libero"}
        entry = PolicyEntry(name="mine", description="", adapter="openpi", cameras=("hand", "front"), settings=settings,
                            convention="libero_env")  # fmt: skip
        monkeypatch.setitem(POLICIES._entries, "mine", entry)
        rows = row_policy("mine", CAMERAS).ask(observation(), 3)
        np.testing.assert_array_equal(rows, [[1, 90, 3, 4]] * 2)
        with pytest.raises(InputError, match="needs a state of 8 numbers, and has 2"):
            row_policy("mine", CAMERAS).ask(observation(**{"observation.state": STATE[:2]}))
        with pytest.raises(UnknownNameError, match="'front'"):
            row_policy("mine", CAMERAS[1:])


@pytest.mark.parametrize(
    ("adapter", "cameras", "settings", "text"),
    [
        ("openvla_rest", (), {}, "/act takes one camera, and its entry names 0"),
        ("openvla_rest", ("front", "hand"), {}, "/act takes one camera, and its entry names 2"),
        ("openpi", (), {"dialect": "libero"}, "names no cameras"),
        ("lerobot", ("front",), {"images": ["front"]}, "images is a table"),
    ],
)
def test_an_entry_with_other_cameras_than_its_adapter_takes_is_a_sentence(
    adapter: str, cameras: tuple[str, ...], settings: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = PolicyEntry(name="mine", description="", adapter=adapter, cameras=cameras, settings=settings,
                        convention="libero_env")  # fmt: skip
    monkeypatch.setitem(POLICIES._entries, "mine", entry)
    with pytest.raises(InputError, match=f"mine: .*{text}"):
        row_policy("mine", CAMERAS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("glance", "gives motions of the tool of Merton's cell"),
        ("nobody", "unknown vla 'nobody'"),
        ("no/such/folder", "is no folder of a checkpoint"),
        ("test_row_policies:Nothing", "has no 'Nothing'"),
    ],
)
def test_another_name_is_refused(name: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        row_policy(name, CAMERAS)


def test_a_server_that_is_not_there_is_no_outcome() -> None:
    pytest.importorskip("httpx2", reason="httpx2 is not installed (the extra remote)")
    policy = row_policy("http://127.0.0.1:9", CAMERAS)
    with pytest.raises(InfrastructureError):
        policy.ask(observation())


def test_a_fingerprint_changes_with_the_weights(tmp_path: Path) -> None:
    assert fingerprint("ws://127.0.0.1:9") == fingerprint("glance") == fingerprint("no_such_module:Policy") == ""
    assert len(fingerprint("test_row_policies:Told")) == 16
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = fingerprint(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert first != fingerprint(str(tmp_path)) != ""


def test_a_camera_is_named_whole_or_by_its_end() -> None:
    assert key_of("hand", CAMERAS) == key_of(CAMERAS[1], CAMERAS) == CAMERAS[1]
    with pytest.raises(UnknownNameError, match="front, hand"):
        key_of("wrist", CAMERAS)
