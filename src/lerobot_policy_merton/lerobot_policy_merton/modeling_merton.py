"""The policy type `merton`: any policy, asked about distorted pictures, and about the clean ones beside them."""

from __future__ import annotations

import atexit
import os
import sys
from copy import deepcopy
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
from lerobot.policies.pretrained import PreTrainedPolicy

from lerobot_policy_merton.configuration_merton import MertonConfig
from lerobot_policy_merton.processor_merton import distorted
from merton.config import load
from merton.episodes.design import Condition, Design
from merton.episodes.run import EpisodesRun
from merton.episodes.shown import ShownPart
from merton.errors import InputError, MertonError
from merton.gym.rollouts import Rollouts
from merton.models.checkpoints import fingerprint_of, locate


class MertonPolicy(PreTrainedPolicy):
    """The wrapped policy on distorted pictures.

    It gets observations as lerobot-eval makes them of an environment's, upright, (3, height, width) of 0 .. 1, before
    the wrapped policy's own pipelines resize and normalise them. At level 0 it hands them on bit by bit.
    """

    config_class = MertonConfig
    name = "merton"

    def __init__(self, config: MertonConfig, **kwargs: Any) -> None:
        super().__init__(config)
        sys.excepthook = one_sentence
        if not config.wrapped:
            raise InputError("--policy.wrapped names the policy that is shown distorted pictures: a folder or a name")
        inner = PreTrainedConfig.from_pretrained(config.wrapped)
        inner.device, inner.pretrained_path = config.device, Path(config.wrapped)
        self.wrapped = get_policy_class(inner.type).from_pretrained(config.wrapped, config=inner)
        overrides: dict[str, Any] = {"device_processor": {"device": config.device}}
        if config.rename_map:
            overrides["rename_observations_processor"] = {"rename_map": config.rename_map}
        self._before, self._after = make_pre_post_processors(
            inner, pretrained_path=config.wrapped, preprocessor_overrides=overrides
        )
        self._rollouts = rollouts(config)
        self._is_new = True
        self.wrapped.eval()
        self.wrapped.reset()

    def reset(self) -> None:
        """End the episodes of the batch before; the next ones begin with the next observation."""
        self._is_new = True
        self._rollouts.over()
        self.wrapped.reset()

    def select_action(self, batch: dict[str, Any], **kwargs: Any) -> torch.Tensor:
        """The wrapped policy's actions (batch, columns) on distorted pictures, in the units of the environment."""
        rollouts = self._rollouts
        if self._is_new:
            count = next(len(value) for value in batch.values() if isinstance(value, torch.Tensor))
            rollouts.begin(batch.get("task") or [""] * count)
            self._is_new = False
        shown, clean = distorted(batch, rollouts.show), None
        episode = rollouts.episodes[-1] if rollouts.episodes else None
        if episode is not None and episode.asks_clean(rollouts.step):
            clean = self._clean_action(batch, **kwargs)
        action = self._after(self.wrapped.select_action(self._before(shown), **kwargs))
        if episode is not None:
            episode.decided(rollouts.step, action[0].float().cpu().numpy(), clean)
        rollouts.step += 1
        return action

    def _clean_action(self, batch: dict[str, Any], **kwargs: Any) -> Any:
        """The action on the pictures as they are, of a copy of the policy in its present state, with the same draws.

        Returns:
            (columns,); None if it is the next one of a chunk, which follows from the pictures of an earlier step.
        """
        shared = {id(tensor): tensor for tensor in chain(self.wrapped.parameters(), self.wrapped.buffers())}
        copy = deepcopy(self.wrapped, shared)
        device = torch.device(self.config.device)
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            batch = self._before(batch)
            has_asked: list[bool] = []
            for module in copy.modules():
                if module is not copy:
                    module.register_forward_pre_hook(lambda *_: has_asked.append(True))
            action = self._after(copy.select_action(batch, **kwargs))
        return action[0].float().cpu().numpy() if has_asked else None

    def predict_action_chunk(self, batch: dict[str, Any], **kwargs: Any) -> torch.Tensor:
        """Refused: a chunk alone has no step of an episode."""
        raise InputError("the policy type merton selects actions, as lerobot-eval asks for them")

    def forward(self, batch: dict[str, Any]) -> Any:
        """Refused: nothing is trained."""
        raise InputError("the policy type merton is for evaluation; train the policy that it wraps")

    def get_optim_params(self) -> dict[str, Any]:
        """Empty: nothing is trained."""
        return {}


def rollouts(config: MertonConfig) -> Rollouts:
    """The episodes that the options ask for, recorded until the process ends if they are to be."""
    condition = None if config.distortion is None else Condition(config.distortion, config.level)
    if config.distortion is None and config.level:
        raise InputError(f"--policy.level={config.level} needs --policy.distortion")
    if config.run is None:
        return Rollouts(condition, seed=config.noise_seed, part=ShownPart(config.cameras))
    if config.results is None:
        raise InputError("--policy.run needs --policy.results: eval_info.json in the folder that --output_dir names")
    run = opened(config, Path(config.run), results := Path(config.results))
    found = Rollouts(condition, run, config.agent or Path(config.wrapped).name.lower(), part=ShownPart(config.cameras))
    atexit.register(close, found, results)
    return found


def opened(config: MertonConfig, path: Path, results: Path) -> EpisodesRun:
    """The run to record in, made if there is none.

    Raises:
        InputError: `results` can be no file, or the run has another design than the one that is named.
    """
    if results.is_dir() or any(parent.exists() and not parent.is_dir() for parent in results.parents):
        raise InputError(f"--policy.results={results} can be no file: name eval_info.json in --output_dir's folder")
    if path.exists():
        run = EpisodesRun.open(path)
        if config.design and load(Path(config.design), Design) != run.design:
            run.close()
            raise InputError(f"--policy.run={path} has another design than {config.design}: name another run")
        return run
    types = (config.distortion,) if config.level else ()
    own = {"name": path.name, "seed": config.noise_seed, "distortions": types, "levels": (config.level,)}
    if config.cameras is not None:
        own["distort"] = {"cameras": config.cameras}
    design = Path(config.design) if config.design else Design.model_validate(own)
    folder = locate(config.wrapped)  # its name alone is recorded: a path says more of a machine than of a policy
    name = folder.resolve().name if Path(config.wrapped).is_dir() else config.wrapped
    source = {"protocol": "lerobot", "harness": "lerobot-eval", "policy": name, "weights": fingerprint_of(folder)}
    return EpisodesRun.create(path.parent, design, path.name, source)


def close(found: Rollouts, results: Path) -> None:
    """End the episodes when the process ends, with exit code 1 and one sentence if none of them is in the record."""
    try:
        found.close(results)
        if any(episode.recorded for episode in found.episodes):
            return
        fault = f"the run {found.run.path.name if found.run else ''} has their results already, of an earlier time"
    except MertonError as error:
        fault = f"their conditions are given again: {error}"
    if found.episodes:
        print(f"Merton recorded no episode: {fault}", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # at this point an exception changes the exit code no more


def one_sentence(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Tell a user's mistake without the traceback that lerobot-eval, which catches nothing, would end with."""
    if isinstance(error, MertonError):
        print(f"merton: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
