"""The policies of the study in other worlds, and the tools that clone them (tools/studies/worlds)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from clone import places_of, ridge_of
from clone import read as demonstrations_in
from cloned import SIZE_PX, Network, Ridge, pixels
from demonstrations import Wanted, make
from point_added import add_point

from merton.errors import InputError, InvalidActionError

SCENES = 12


@pytest.fixture
def demonstrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with demonstrations of the point world's expert."""
    add_point(tmp_path / "lab", monkeypatch, adapter="Hand")
    folder = tmp_path / "demos"
    make(
        [
            Wanted("point", "reach", scene, ("above",), 4, kind == "pushed", folder / f"{scene:03}_{kind}.npz")
            for scene in range(SCENES)
            for kind in ("expert", "pushed")
        ]
    )
    return folder


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    """Of a ridge, as `clone.py` stores them."""
    return {f"{name}_0": values for name, values in ridge_of(demonstrations_in(folder)).items()}


def stored(file: Path, weights: dict[str, np.ndarray]) -> str:
    """A file of weights for one task and camera; returns its name."""
    np.savez(file, instructions=np.array(["go to the goal"]), cameras=np.array(["above"]), **weights)
    return str(file)


def test_a_ridge_finds_in_pictures_where_the_expert_went(demonstrated):
    known = demonstrations_in(demonstrated)
    of = ridge_of(known)

    seen = of["mean"] + pixels(known.pictures) @ of["eye"]

    assert np.abs(seen - known.places).mean() < 0.3 * np.abs(of["mean"] - known.places).mean()


def test_a_pushed_demonstration_teaches_the_experts_rows_from_where_the_hand_was_pushed(demonstrated):
    known = demonstrations_in(demonstrated)

    way = np.clip(known.places[:, 3:5] - known.hand[:, :2], -0.1, 0.1)  # as the point world's expert goes

    is_far = np.abs(known.places[:, 3:5] - known.hand[:, :2]).min(1) > 0.15  # its places are near the goal, not on it
    assert is_far.sum() > 3
    np.testing.assert_allclose(known.rows[is_far, 0, :2], way[is_far], atol=1e-9)


def test_a_ridge_that_does_not_look_decides_the_same_on_every_picture(demonstrated, tmp_path):
    file = stored(tmp_path / "point_ridge.npz", weights_of(demonstrated))
    example = Ridge(file).make_example()
    black = {camera: replace(view, color=np.zeros_like(view.color)) for camera, view in example.views.items()}

    looking, blind = Ridge(file), Ridge(file, blind=True)

    assert not np.allclose(looking.act(example).deltas, looking.act(replace(example, views=black)).deltas)
    np.testing.assert_array_equal(blind.act(example).deltas, blind.act(replace(example, views=black)).deltas)
    assert blind.cameras == ()


def test_a_task_without_demonstrations_is_an_invalid_action(demonstrated, tmp_path):
    ridge = Ridge(stored(tmp_path / "point_ridge.npz", weights_of(demonstrated)))

    with pytest.raises(InvalidActionError, match="not trained to 'fly'"):
        ridge.act(replace(ridge.make_example(), instruction="fly"))


def test_missing_weights_and_demonstrations_are_named(tmp_path):
    with pytest.raises(InputError, match=r"no weights 'ridge\.npz': tools/studies/worlds/clone\.py makes them"):
        Ridge("ridge.npz")
    with pytest.raises(InputError, match="has no demonstration that did the task"):
        demonstrations_in(tmp_path)


def test_places_are_where_the_gripper_changes_and_the_end():
    trace = np.array([[0, 0, 3, 1], [1, 0, 2, 1], [2, 0, 1, 0], [3, 0, 1, 0], [4, 0, 1, 1]], dtype=float)

    np.testing.assert_array_equal(places_of(trace), [1, 0, 2, 4, 0, 1])
    np.testing.assert_array_equal(places_of(trace[2:4]), [3, 0, 1, 3, 0, 1])


def test_the_network_decides_in_numpy_as_in_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="the twin needs torch")
    from network_twin import NetworkTwin

    torch.manual_seed(3)
    twin = NetworkTwin(cameras=2, tasks=3, rows=28)
    weights = {name: value.detach().numpy() for name, value in twin.state_dict().items()}
    spread, middle = np.array([1, 2, 3, 1, 1, 1, 1.0]), np.array([0.1, 0.2, 0.3])
    instructions, cameras = np.array(["a", "b", "c"]), np.array(["left", "right"])
    np.savez(tmp_path / "net.npz", instructions=instructions, cameras=cameras, spread=spread, middle=middle, **weights)
    pictures = np.random.default_rng(0).integers(0, 256, (2, SIZE_PX, SIZE_PX, 3), np.uint8)
    hand = np.array([0.15, 0.1, 0.4])

    rows = Network(str(tmp_path / "net.npz")).rows(1, pictures, hand, 0.7)

    state = torch.tensor([[*(hand - middle) / 0.1, 0.7, 0, 1, 0]]).float()
    with torch.no_grad():
        expected = twin(torch.from_numpy(pictures).permute(0, 3, 1, 2)[None], state)[0].numpy()
    np.testing.assert_allclose(rows, expected.reshape(-1, 7) * spread, atol=1e-4)
