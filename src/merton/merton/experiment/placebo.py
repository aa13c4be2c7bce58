"""The placebo of an attribution: images with a change that nobody can see, which still is a change.

A policy at its threshold, or one that draws, does otherwise on any other image, whichever part of it has changed. That
is chance, and a part of the images that has no effect of its own still has as much of it. The same images again would
not show it: policies are deterministic, or draw from the seed of the trial, which all designs share.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from merton.experiment.plan import Trial
from merton.experiment.ports import CellView, Ports, SegmentingPorts
from merton.experiment.runner import Runner
from merton.experiment.trial import run_trial
from merton.results.records import TrialRecord
from merton.seeding import derive_seed, generator
from merton.world.observation import CameraView

PLACEBO = "placebo"
"""The design of trials whose images are changed by one grey level at most."""


class PlaceboPorts:
    """Ports whose colour images, undistorted and distorted, differ from those of `ports` by one grey level at most.

    Each value of a pixel is one of 256 lower, the same or one higher, by an even chance: no one sees it (ours: it is
    the smallest change that there is). Depth stays.

    Args:
        seed: of the changes: the same trial sees the same images.
    """

    def __init__(self, ports: SegmentingPorts, seed: int) -> None:
        self._ports, self._seed = ports, seed
        for name in dir(SegmentingPorts):
            if not name.startswith("_") and name != "view":
                setattr(self, name, getattr(ports, name))

    def view(self, color: Collection[str] | None = None, depth: Collection[str] | None = None) -> CellView:
        """See `Ports`."""
        view = self._ports.view(color, depth)
        return replace(view, reference=self._changed(view.reference), distorted=self._changed(view.distorted))

    def _changed(self, images: Mapping[str, CameraView]) -> dict[str, CameraView]:
        return {name: replace(seen, color=one_level_off(seen, self._seed)) for name, seen in images.items()}


def one_level_off(seen: CameraView, seed: int) -> NDArray[np.uint8]:
    """The image (height, width, 3) of a camera with each value at most one off, within 0..255.

    Seed, camera and time of exposure alone decide, so both sides of a view have the same change.
    """
    rng = generator(PLACEBO, seed, seen.camera, seen.stamp_ns)
    change = rng.integers(-1, 2, seen.color.shape, np.int16)
    return np.clip(seen.color + change, 0, 255).astype(np.uint8)


def run_placebo(runner: Runner, trial: Trial) -> TrialRecord:
    """The record of a trial, distorted or not, as an experiment called `PLACEBO`; raises as `run_trial`.

    The changes are drawn from the seed of the experiment and the trial's id.
    """
    assert isinstance(runner.ports, SegmentingPorts)
    whose, reference = runner.undistorted.measure_for(trial)
    ports = cast(Ports, PlaceboPorts(runner.ports, derive_seed(runner.spec.seed, trial.id)))
    spec = runner.spec.for_trial(trial)
    report = run_trial(ports, spec, PLACEBO, trial, reference, runner.undistorted.corpus(trial), whose=whose)
    return report.record
