"""Policies of Hugging Face LeRobot in this process: Pi0, SmolVLA, ACT and the others of its factory.

LeRobot needs Python 3.12 and torchvision, so it is a separate extra. Its asynchronous server is not supported, because
that server unpickles its requests.
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
from merton.errors import InputError, MissingDependencyError, missing
from merton.models.base import Finding
from merton.models.checkpoints import check_files, loading, locate
from merton.world.action import ActionChunk
from merton.world.observation import Observation

_PYTHON = (3, 12)


class LeRobot(Policy):
    """A checkpoint of LeRobot's with its own pre- and postprocessor.

    Args:
        name: name in the catalogue.
        checkpoint, revision: see `merton.models.checkpoints.locate`.
        convention: the meaning of the numbers, and the state of the arm at rest.
        images: the checkpoint's name of an image to a camera, such as {"observation.images.base_0_rgb": "top"}.
        device: such as "cuda:1"; "" is the GPU if there is one.
    """

    adapter_version = "2"

    def __init__(
        self,
        name: str,
        checkpoint: str,
        revision: str,
        convention: Convention,
        images: Mapping[str, str],
        device: str = "",
    ) -> None:
        self.name, self.checkpoint, self.revision = name, checkpoint, revision
        self.cameras = tuple(dict.fromkeys(images.values()))
        self._convention, self._images, self._device = convention, dict(images), device
        self._loaded: tuple[Any, Any, Any] | None = None

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> LeRobot:
        """The policy of a catalogue entry; raises InputError if its images do not show its cameras."""
        images = entry.settings.get("images", {})
        convention = entry.means
        if convention is None or not isinstance(images, dict) or set(images.values()) != set(entry.cameras):
            raise InputError(f"{entry.name}: lerobot needs a convention, and images that show each of its cameras")
        return cls(entry.name, entry.checkpoint, entry.revision, convention, **entry.settings)

    def act(self, observation: Observation) -> ActionChunk:
        """The chunk, converted; noise comes from the observation's seed alone.

        A policy that looks at several instants (Diffusion, VQ-BeT) is shown this one in the place of all, as LeRobot
        does at the beginning of an episode: models keep nothing between two calls.

        Raises:
            InputError: a view is missing.
            InvalidActionError: no usable action.
            MissingDependencyError: LeRobot or the checkpoint is missing.
        """
        started = time.perf_counter()
        self.require_views(observation)
        policy, before, after = self._ready()
        import torch

        sent = self._convention.joints_of(observation)
        batch: dict[str, Any] = {"observation.state": torch.from_numpy(sent.astype(np.float32))[None]}
        for key, camera in self._images.items():
            pixels = torch.from_numpy(np.ascontiguousarray(observation.views[camera].color.transpose(2, 0, 1)))
            batch[key] = pixels[None].to(torch.float32) / 255.0
        batch["task"] = [observation.instruction]
        policy.reset()
        gpus = range(torch.cuda.device_count())
        with torch.inference_mode(), torch.random.fork_rng(devices=gpus):
            torch.manual_seed(observation.noise_seed % 2**63)
            raw = after(_chunk(policy, before(batch)))
        rows = raw[0].to(torch.float32).cpu().numpy()
        used = sent if self._convention.rest else None
        return self._convention.chunk(rows, state=used, model=self.name, latency_s=time.perf_counter() - started)

    def check(self) -> Iterator[Finding]:
        """LeRobot, checkpoint and weights, then an action on the example."""
        require_lerobot()
        findings = check_files(self.checkpoint, self.revision)
        yield from findings
        if all(finding.ok for finding in findings):
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
                policy = get_policy_class(config.type).from_pretrained(folder, config=config).to(device).eval()
                overrides = {"device_processor": {"device": device}}
                before, after = make_pre_post_processors(
                    policy.config, pretrained_path=str(folder), preprocessor_overrides=overrides
                )
            self._loaded = policy, before, after
        return self._loaded


def _chunk(policy: Any, batch: dict[str, Any]) -> Any:
    """The actions (1, n, d) of a policy that was reset, by LeRobot's documented methods.

    `select_action` is the one that "deals with caching" where a model uses a history of observations: it fills the
    queues that `predict_action_chunk` of such a policy finds empty, and gives one action of the chunk a call.
    A policy's configuration says in `observation_delta_indices` which observations it uses; None is the present one.
    """
    config = policy.config
    if getattr(config, "observation_delta_indices", None) is None:
        return policy.predict_action_chunk(batch)
    import torch

    rows = getattr(config, "n_action_steps", None) or getattr(config, "action_chunk_size", None) or 1
    return torch.stack([policy.select_action(dict(batch)) for _ in range(rows)], dim=1)


def require_lerobot() -> None:
    """Raise MissingDependencyError, which names the missing part, unless LeRobot can be imported."""
    if "lerobot" in sys.modules:
        return
    if sys.version_info < _PYTHON:
        raise MissingDependencyError(
            f"LeRobot needs Python 3.12 or later, this is {'.'.join(map(str, sys.version_info[:2]))}: "
            "make an environment with a newer one"
        )
    for module in ("lerobot", "torchvision"):
        if find_spec(module) is None:
            raise missing(module, "lerobot", "a LeRobot policy")
