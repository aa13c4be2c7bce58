"""Policies of Hugging Face LeRobot in this process: Pi0, SmolVLA, ACT and the others of its factory.

LeRobot needs a torch of its own and torchvision, so it is a separate extra: 0.4.4 on Python 3.10 and 3.11, 0.6 from
3.12 on. Its asynchronous server is not supported, because that server unpickles its requests.

LeRobot asks a policy at every control step and shows it the frame of that step: `select_action` keeps a queue of the
actions of a chunk, and fills it anew from the frame at which it is empty. Merton asks once a chunk, at the frame at
which the queue would be empty; the rest of the frames would not be looked at. So one chunk is what `select_action`
gives from a reset to the next inference: `n_action_steps` actions.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from merton.decision.models.base import Policy, PolicyEntry
from merton.decision.models.conventions import Convention
from merton.decision.models.images import shrunk
from merton.decision.models.states import state_of
from merton.errors import InputError, missing
from merton.models.base import Finding
from merton.models.checkpoints import check_files, loading, locate
from merton.world.action import ActionChunk
from merton.world.cell import load_cell
from merton.world.observation import Image, Observation


class LeRobot(Policy):
    """A checkpoint of LeRobot's with its own pre- and postprocessor.

    Args:
        name: name in the catalogue.
        checkpoint, revision: see `merton.models.checkpoints.locate`.
        convention: the meaning of the numbers, and the state of the arm at rest.
        images: the checkpoint's name of an image to a camera, such as {"observation.images.base_0_rgb": "top"}.
        device: such as "cuda:1"; "" is the GPU if there is one.
        state: the arm's state, as of `merton.decision.models.states.state_of`.
        stateful: ask it at every row, as LeRobot does, with the queues, history and averages that it has kept since the
            trial began.
    """

    adapter_version = "4"

    def __init__(
        self,
        name: str,
        checkpoint: str,
        revision: str,
        convention: Convention,
        images: Mapping[str, str],
        device: str = "",
        state: str = "joints",
        stateful: bool = False,
    ) -> None:
        self.name, self.checkpoint, self.revision = name, checkpoint, revision
        self.cameras = tuple(dict.fromkeys(images.values()))
        self._convention, self._images, self._device = convention, dict(images), device
        self._state, self._stateful, self._begins = state, stateful, True
        self._loaded: tuple[Any, Any, Any] | None = None

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> LeRobot:
        """The policy of a catalogue entry; raises InputError if its images do not show its cameras."""
        images = entry.settings.get("images", {})
        convention = entry.means
        if convention is None or not isinstance(images, dict) or set(images.values()) != set(entry.cameras):
            raise InputError(f"{entry.name}: lerobot needs a convention, and images that show each of its cameras")
        kept: dict[str, Any] = {"state": "tool" if entry.state == "tool" else "joints", "stateful": entry.stateful}
        return cls(entry.name, entry.checkpoint, entry.revision, convention, **kept, **entry.settings)

    def begin_trial(self) -> None:
        """A stateful one forgets what it has kept."""
        self._begins = True

    def act(self, observation: Observation) -> ActionChunk:
        """The chunk, converted; noise comes from the observation's seed alone.

        A policy that looks at several instants (Diffusion, VQ-BeT) is shown this one in the place of all, as LeRobot
        does at the beginning of an episode: models keep nothing between two calls, and between two chunks no camera
        is read. One that is stateful gives a single row, and is asked again after it.

        Raises:
            InputError: a view is missing, or the policy mixes chunks over time.
            InvalidActionError: no usable action.
            MissingDependencyError: LeRobot or the checkpoint is missing.
        """
        started = time.perf_counter()
        self.require_views(observation)
        policy = self._ready()[0]
        import torch

        sent = state_of(observation, self._state, self._convention)
        batch: dict[str, Any] = {"observation.state": torch.from_numpy(sent.astype(np.float32))[None]}
        for key, camera in self._images.items():
            batch[key] = picture(policy, key, observation.views[camera].color)
        batch["task"] = [observation.instruction]
        rows = self.rows(batch, observation.noise_seed)
        used = sent if self._convention.rest else None
        return self._convention.chunk(rows, state=used, model=self.name, latency_s=time.perf_counter() - started)

    def rows(self, batch: dict[str, Any], noise_seed: int) -> np.ndarray:
        """The actions (n, columns) that follow from LeRobot's batch of one observation, as the checkpoint gives them.

        Raises:
            InputError: the policy mixes chunks over time.
            MissingDependencyError: LeRobot or the checkpoint is missing.
        """
        policy, before, after = self._ready()
        import torch

        if self._begins or not self._stateful:
            policy.reset()
        self._begins = False
        gpus = range(torch.cuda.device_count())
        with torch.inference_mode(), torch.random.fork_rng(devices=gpus):
            torch.manual_seed(noise_seed % 2**63)
            batch = before(batch)
            raw = after(policy.select_action(batch)[:, None] if self._stateful else _chunk(policy, batch))
        found: np.ndarray = raw[0].to(torch.float32).cpu().numpy()
        return found

    def check(self) -> Iterator[Finding]:
        """LeRobot, checkpoint and weights, the arm and the history, then an action on the example."""
        require_lerobot()
        findings = check_files(self.checkpoint, self.revision)
        yield from findings
        if not all(finding.ok for finding in findings):
            return
        own, there = self._convention.arm, load_cell().robot.model
        if own is not None and own.name != there:
            yield Finding("arm", True, f"its joints are those of a {own.name}, the cell has a {there}")
        instants = _instants(self._ready()[0])
        if instants > 1:
            yield Finding("history", True, f"looks at {instants} instants; the present one is shown in place of all")
        yield from super().check()

    def _ready(self) -> tuple[Any, Any, Any]:
        """(policy, preprocessor, postprocessor), loaded once."""
        if self._loaded is None:
            require_lerobot()
            import torch
            from lerobot.configs.policies import PreTrainedConfig
            from lerobot.policies.factory import get_policy_class, make_pre_post_processors

            folder = locate(self.checkpoint, self.revision)
            device = self._device or ("cuda" if torch.cuda.is_available() else "cpu")
            with loading(self.name, folder):
                config = PreTrainedConfig.from_pretrained(folder)
                config.device = device
                if getattr(config, "pretrained_backbone_weights", None):
                    config.pretrained_backbone_weights = None  # the checkpoint's replace them; else they are downloaded
                policy = get_policy_class(config.type).from_pretrained(folder, config=config).to(device).eval()
                overrides = {"device_processor": {"device": device}}
                before, after = make_pre_post_processors(
                    policy.config, pretrained_path=str(folder), preprocessor_overrides=overrides
                )
            self._loaded = policy, before, after
        return self._loaded


def _instants(policy: Any) -> int:
    """The number of instants that a policy looks at: its configuration names them; None is the present one."""
    return len(getattr(policy.config, "observation_delta_indices", None) or (0,))


def picture(policy: Any, key: str, color: Image) -> Any:
    """A picture (height, width, 3) as a tensor (1, 3, height, width) of 0 .. 1, in the size of the checkpoint."""
    import torch

    pixels = shrunk(color, _size_px(policy, key))
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))[None].to(torch.float32) / 255.0


def _chunk(policy: Any, batch: dict[str, Any]) -> Any:
    """The actions (1, n, d) of a policy that was reset: those that `select_action` gives up to its next inference.

    A policy with a history has queues that `select_action` alone fills, and that `predict_action_chunk` finds empty.
    Without a history `select_action` is no more than the first `n_action_steps` of `predict_action_chunk`.

    Raises:
        InputError: the policy averages each action over chunks of earlier steps.
    """
    config = policy.config
    if getattr(config, "temporal_ensemble_coeff", None) is not None:
        raise InputError(
            "it mixes the chunks of all earlier control steps (temporal_ensemble_coeff), and a model keeps nothing "
            "unless its entry says `stateful: true`: write that, or null for it and n_action_steps into config.json of "
            "the checkpoint"
        )
    rows = getattr(config, "n_action_steps", None) or getattr(config, "action_chunk_size", None)
    if getattr(config, "observation_delta_indices", None) is None:
        return policy.predict_action_chunk(batch)[:, :rows]
    import torch

    return torch.stack([policy.select_action(dict(batch)) for _ in range(rows or 1)], dim=1)


def _size_px(policy: Any, key: str) -> tuple[int, int] | None:
    """(height, width) of the pictures that a policy was trained on, or None if it does not say."""
    feature = (getattr(policy.config, "input_features", None) or {}).get(key)
    return None if feature is None else (int(feature.shape[-2]), int(feature.shape[-1]))


def require_lerobot() -> None:
    """Raise MissingDependencyError, which names the missing part, unless LeRobot can be imported."""
    if "lerobot" in sys.modules:
        return
    for module in ("lerobot", "torchvision"):
        if find_spec(module) is None:
            raise missing(module, "lerobot", "a LeRobot policy")
