"""Pictures of a batch of LeRobot's observations, distorted: by the policy type `merton`, or by a step of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from lerobot.processor import ObservationProcessorStep, PolicyProcessorPipeline, ProcessorStepRegistry
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action

from merton.episodes.shown import EpisodePictures, ShownPart, pictures_seed
from merton.errors import InputError
from merton.gym.shown_in import Pictures
from merton.results.records import TestCase

IMAGE = "observation.image"
"""Beginning of the keys of pictures: "observation.image", "observation.images.top"."""


def pixels_of(picture: torch.Tensor) -> np.ndarray:
    """A picture (3, height, width) of 0 .. 1, as lerobot makes it of an environment's, as (height, width, 3) uint8."""
    if picture.ndim != 3 or picture.shape[0] != 3 or not picture.is_floating_point():
        raise InputError(f"a picture of lerobot is (3, height, width) of 0 .. 1, got {picture.dtype} {picture.shape}")
    if not 0 <= float(picture.min()) <= float(picture.max()) <= 1:
        raise InputError("a picture has values beyond 0 .. 1: distort it before it is normalised")
    return np.ascontiguousarray((picture * 255).round().to(torch.uint8).permute(1, 2, 0).cpu().numpy())


def cameras_of(batch: Mapping[str, Any]) -> dict[str, str]:
    """Cameras of a batch to its keys: the last part of each, or all of it where two end alike."""
    keys = [key for key in batch if key.startswith(IMAGE)]
    ends = [key.rpartition(".")[2] for key in keys]
    return {end if ends.count(end) == 1 else key: key for end, key in zip(ends, keys, strict=True)}


def distorted(batch: dict[str, Any], show: Callable[[int, Pictures], Pictures]) -> dict[str, Any]:
    """A batch of observations with the pictures that `show` gives for each; untouched tensors are the very same."""
    keys = cameras_of(batch)
    rows: dict[str, dict[int, np.ndarray]] = {}
    for i in range(len(batch[next(iter(keys.values()))]) if keys else 0):
        given = {camera: pixels_of(batch[key][i]) for camera, key in keys.items()}
        shown = show(i, given)
        for camera, key in keys.items():
            if shown[camera] is not given[camera]:
                rows.setdefault(key, {})[i] = shown[camera]
    changed = dict(batch)
    for key, pictures in rows.items():
        changed[key] = batch[key].clone()
        for i, pixels in pictures.items():  # the very arithmetic of lerobot's preprocess_observation
            changed[key][i] = torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1))).to(batch[key]) / 255
    return changed


@ProcessorStepRegistry.register("merton_distort_pictures")
@dataclass
class DistortPicturesStep(ObservationProcessorStep):
    """A step of a pipeline that distorts the pictures of its observations, before they are normalised or resized.

    Attributes:
        distortion: a type of images or a fault of time. Time begins anew with the pipeline's `reset`, which
            lerobot-eval does not call.
        level: 0 .. 5.
        cameras: as of `MertonConfig`.
        noise_seed: of noise and faults, >= 0.
    """

    distortion: str = "reference"
    level: int = 0
    cameras: list[str] | None = None
    noise_seed: int = 0
    _shown: list[EpisodePictures] = field(default_factory=list, init=False, repr=False)
    _step: int = field(default=0, init=False, repr=False)

    def observation(self, observation: dict[str, Any]) -> dict[str, Any]:
        """The observation with distorted pictures."""
        shown = distorted(observation, self._show)
        self._step += 1
        return shown

    def _show(self, i: int, given: Pictures) -> Pictures:
        while i >= len(self._shown):
            case = TestCase("pipeline", len(self._shown), self.distortion, self.level)
            seed, part = pictures_seed(self.noise_seed, case), ShownPart(self.cameras)
            self._shown.append(EpisodePictures(self.distortion, self.level, seed, part))
        return self._shown[i].show_all(self._step, given)

    def reset(self) -> None:
        """Begin a new episode."""
        self._shown, self._step = [], 0

    def get_config(self) -> dict[str, Any]:
        """The options, as they are saved with a pipeline."""
        return {name: getattr(self, name) for name in ("distortion", "level", "cameras", "noise_seed")}

    def transform_features(self, features: Any) -> Any:
        """The features as they are."""
        return features


def make_merton_pre_post_processors(config: Any, dataset_stats: Any = None) -> tuple[Any, Any]:
    """Pipelines without a step: the policy distorts what it gets and asks the wrapped policy's own pipelines."""
    return PolicyProcessorPipeline(steps=[], name="policy_preprocessor"), PolicyProcessorPipeline(
        steps=[],
        name="policy_postprocessor",
        to_transition=policy_action_to_transition,
        to_output=transition_to_policy_action,
    )
