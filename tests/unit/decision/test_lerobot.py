"""LeRobot's adapter against a stand-in of the few modules and methods of LeRobot 0.6.1 that it calls."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from merton.decision.models.arms import UR5E
from merton.decision.models.base import POLICIES, PolicyEntry, example_observation
from merton.decision.models.conventions import CONVENTIONS
from merton.decision.models.images import shrunk
from merton.decision.models.lerobot import LeRobot, require_lerobot
from merton.errors import InputError, InvalidActionError, MissingDependencyError

IMAGES = {"observation.images.base_0_rgb": "top", "observation.images.left_wrist_0_rgb": "wrist"}


class PolicyStandIn:
    """Not Pi0: gives the state it was shown, three rows of it, with noise from torch's global generator on joint 1.

    It remembers how often it was asked since `reset`, so that a missing reset would be seen.
    """

    def __init__(self, config: Any, broken: bool = False) -> None:
        self.config, self.broken, self.queue = config, broken, 0
        self.seen: dict[str, Any] = {}

    def to(self, device: str) -> PolicyStandIn:
        """As in torch modules."""
        return self

    def eval(self) -> PolicyStandIn:
        """As in torch modules."""
        return self

    def reset(self) -> None:
        """Forget earlier calls."""
        self.queue = 0

    def predict_action_chunk(self, batch: dict[str, Any]) -> Any:
        """(1, 3, 32) normalised to half its size."""
        import torch

        self.queue += 1
        self.seen = batch
        rows = torch.zeros(1, 3, 32)
        rows[..., :7] = batch["observation.state"][:, None] / 2 + (self.queue - 1)
        rows[..., 0] += torch.rand(1, 3) * 0.1
        return rows * float("nan") if self.broken else rows


class HistoryStandIn(PolicyStandIn):
    """Not Diffusion, not VQ-BeT: has queues as theirs, which `select_action` alone fills, with copies at the beginning.

    By modeling_diffusion.py and modeling_vqbet.py of LeRobot. An action is the mean of the states it has seen, halved,
    and counts the actions of its chunk on joint 1.
    """

    STEPS = 3

    def reset(self) -> None:
        """Clear the queues."""
        self.states: list[Any] = []
        self.actions: list[Any] = []
        self.chunks = 0

    def predict_action_chunk(self, batch: dict[str, Any]) -> Any:
        """(1, 4, 32) of the queued states; fails as torch does where there is none."""
        import torch

        seen = torch.stack(self.states, dim=1)
        self.chunks += 1
        rows = torch.zeros(1, 4, 32)
        rows[..., :7] = seen.mean(dim=1)[:, None] / 2
        rows[..., 0] += 0.01 * torch.arange(4) + 0.001 * (seen.shape[1] - self.STEPS) + (self.chunks - 1)
        return rows

    def select_action(self, batch: dict[str, Any]) -> Any:
        """(1, 32), the next action of the chunk."""
        self.seen = batch
        state = batch["observation.state"]
        self.states = [*self.states[1:], state] if self.states else [state] * self.STEPS
        if not self.actions:
            self.actions = list(self.predict_action_chunk(batch).transpose(0, 1))
        return self.actions.pop(0)


@pytest.fixture
def lerobot(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """LeRobot's modules as the adapter imports them; the dictionary has their arguments."""
    pytest.importorskip("torch")
    made: dict[str, Any] = {"broken": False, "class": PolicyStandIn, "config": {}}

    class ConfigStandIn:
        @staticmethod
        def from_pretrained(folder: Path) -> SimpleNamespace:
            return SimpleNamespace(type="pi0", device="cpu", folder=folder, **made["config"])

    class ClassStandIn:
        @staticmethod
        def from_pretrained(folder: Path, config: Any) -> PolicyStandIn:
            made["policy"] = made["class"](config, made["broken"])
            made["policy"].reset()
            return made["policy"]

    def make_pre_post_processors(config: Any, pretrained_path: str, preprocessor_overrides: Any) -> Any:
        made["processors"] = (config.type, pretrained_path, preprocessor_overrides)
        return (lambda batch: batch), (lambda action: action * 2)

    names = ("lerobot", "lerobot.configs", "lerobot.configs.policies", "lerobot.policies", "lerobot.policies.factory")
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["lerobot.configs.policies"].PreTrainedConfig = ConfigStandIn  # type: ignore[attr-defined]
    factory = sys.modules["lerobot.policies.factory"]
    factory.get_policy_class = {"pi0": ClassStandIn}.__getitem__  # type: ignore[attr-defined]
    factory.make_pre_post_processors = make_pre_post_processors  # type: ignore[attr-defined]
    return made


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder with a file in place of weights."""
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def policy(checkpoint: Path) -> LeRobot:
    return LeRobot("pi0", str(checkpoint), "", CONVENTIONS["pi0_base"], IMAGES, device="cpu")


def test_the_batch_has_lerobots_form(lerobot: dict[str, Any], checkpoint: Path) -> None:
    model = policy(checkpoint)
    observation = model.make_example()
    chunk = model.act(observation)
    seen = lerobot["policy"].seen
    assert seen["task"] == ["pick up the red cube"]
    for key in IMAGES:
        assert tuple(seen[key].shape) == (1, 3, 240, 424)
        assert float(seen[key].max()) == pytest.approx(128 / 255)
    assert seen["observation.state"][0, :6].numpy() == pytest.approx(observation.joints_rad)
    assert float(seen["observation.state"][0, 6]) == 0.0, "Pi0 counts an open gripper as 0"
    assert lerobot["processors"] == ("pi0", str(checkpoint), {"device_processor": {"device": "cpu"}})
    assert chunk.deltas.shape == (3, 7)
    assert chunk.deltas[:, 6] == pytest.approx([1.0] * 3)


def test_the_output_goes_through_its_postprocessor_and_its_arm(lerobot: dict[str, Any], checkpoint: Path) -> None:
    """Twice half the state is the state, but for joint 1, which has turned by the noise times two."""
    model = policy(checkpoint)
    observation = model.make_example()
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        noise = 2 * 0.1 * torch.rand(1, 3)[0].numpy()
    chunk = model.act(replace(observation, noise_seed=7))
    assert chunk.deltas[:, 5] == pytest.approx(np.diff([0.0, *noise]), abs=1e-6)
    turned = np.array(observation.joints_rad)
    turned[0] += noise[0]
    moved = UR5E.forward(turned)[:3, 3] - UR5E.forward(observation.joints_rad)[:3, 3]
    assert chunk.deltas[0, :3] == pytest.approx(moved, abs=1e-6)


def test_noise_comes_from_the_observation_alone(lerobot: dict[str, Any], checkpoint: Path) -> None:
    import torch

    model = policy(checkpoint)
    example = model.make_example()
    state = torch.get_rng_state()
    first = model.act(replace(example, noise_seed=2**63 + 1)).deltas
    assert (torch.get_rng_state() == state).all(), "the program's own generator is left alone"
    model.act(replace(example, noise_seed=5))
    assert (model.act(replace(example, noise_seed=2**63 + 1)).deltas == first).all()
    assert (model.act(replace(example, noise_seed=5)).deltas != first).any()


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        ({"n_obs_steps": 2, "n_action_steps": 4, "observation_delta_indices": [-1, 0]}, 4),
        ({"n_obs_steps": 5, "action_chunk_size": 4, "observation_delta_indices": [-4, -3, -2, -1, 0]}, 4),
        ({"n_obs_steps": 1, "n_action_steps": 2, "observation_delta_indices": [0]}, 2),
    ],
    ids=["as Diffusion", "as VQ-BeT", "a history of one"],
)
def test_a_policy_with_a_history_is_shown_the_present_in_place_of_it(
    lerobot: dict[str, Any], checkpoint: Path, config: dict[str, Any], rows: int
) -> None:
    lerobot["class"], lerobot["config"] = HistoryStandIn, config
    model = policy(checkpoint)
    example = model.make_example()
    chunk = model.act(example)
    assert chunk.deltas.shape == (rows, 7)
    assert chunk.deltas[1:, 5] == pytest.approx([2 * 0.01] * (rows - 1), abs=1e-6), "the actions of one chunk"
    assert lerobot["policy"].chunks == 1
    turned = replace(example, joints_rad=example.joints_rad + np.array([0.3, 0, 0, 0, 0, 0]))
    model.act(turned)
    assert (model.act(example).deltas == chunk.deltas).all(), "nothing is kept between two calls"


def test_nan_is_an_invalid_action(lerobot: dict[str, Any], checkpoint: Path) -> None:
    lerobot["broken"] = True
    model = policy(checkpoint)
    with pytest.raises(InvalidActionError, match="not finite"):
        model.act(model.make_example())


def test_check_ends_with_the_example(lerobot: dict[str, Any], checkpoint: Path) -> None:
    findings = list(policy(checkpoint).check())
    assert [finding.subject for finding in findings] == ["checkpoint", "arm", "example"]
    assert findings[1].detail == "its joints are those of a UR5e, the cell has a UR5"


def test_only_pictures_of_the_same_form_are_shrunk() -> None:
    """To half: each value is the mean of four; to a square, or to a larger one, the policy prepares them by itself."""
    image = np.random.default_rng(0).integers(0, 256, (240, 424, 3), dtype=np.uint8)
    half = image.reshape(120, 2, 212, 2, 3).mean(axis=(1, 3))
    assert np.abs(shrunk(image, (120, 212)) - half).max() <= 0.5
    assert shrunk(image, (91, 160)).shape == (91, 160, 3)
    for size_px in (None, (240, 424), (224, 224), (480, 848)):
        assert shrunk(image, size_px) is image


def test_missing_parts_are_named(monkeypatch: pytest.MonkeyPatch, checkpoint: Path) -> None:
    with pytest.raises(InputError, match="camera 'wrist'"):
        policy(checkpoint).act(example_observation("reach", ("top",)))
    if "lerobot" in sys.modules:
        pytest.skip("LeRobot is installed")
    monkeypatch.setattr("merton.decision.models.lerobot.sys", SimpleNamespace(modules={}))
    monkeypatch.setattr("merton.decision.models.lerobot.find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"a LeRobot policy needs lerobot: .*merton\[lerobot\]"):
        require_lerobot()


def test_the_catalogues_entry_names_its_images() -> None:
    entry = POLICIES["pi0-base-lerobot"]
    assert isinstance(entry.build(), LeRobot)
    wrong = entry.model_copy(update={"settings": {"images": {"observation.images.base_0_rgb": "top"}}})
    with pytest.raises(InputError, match="images that show each of its cameras"):
        PolicyEntry.build(wrong)
