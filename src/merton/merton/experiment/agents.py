"""The parts of an experiment: an agent, and the part of its images that is distorted."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from merton.config import Model
from merton.experiment.fields import Camera, Identifier, VlaName, VlmName, distinct
from merton.experiment.ports import REGIONS, STAGES, Region, Side, Stage
from merton.experiment.subsets import Part
from merton.experiment.world_facts import present


class AgentSpec(Model):
    """An agent: the VLM that answers, and the VLA that decides.

    Attributes:
        id: name of the agent in results, boards and pictures.
        vlm: the model that answers the question, a name of `merton model list`.
        vla: the policy that acts, a name of `merton model list`.
    """

    id: Identifier
    vlm: VlmName = "describe"
    vla: VlaName


class DistortedPart(Part):
    """The part of the images of a distorted trial that is distorted; elsewhere the models see the reference images.

    Attributes:
        cameras: cameras whose images are distorted.
        stages: `cognition`, the image that the VLM is asked about; `decision`, the images that the VLA acts on.
        steps: numbers of steps, from 0 as in the names of a trial's pictures; every step if left out. The VLM is asked
            at step 0.
        regions: `things`, the pixels that show a thing which the instruction names; `surroundings`, all others. One of
            them alone is for the embedded cell, which knows which pixels those are.
    """

    cameras: Annotated[tuple[Camera, ...], Field(min_length=1), distinct("camera")] = Field(
        default_factory=lambda: present().cameras
    )
    stages: Annotated[tuple[Stage, ...], Field(min_length=1), distinct("stage")] = STAGES
    regions: Annotated[tuple[Region, ...], Field(min_length=1), distinct("region")] = REGIONS

    def side(self, wanted: Side, stage: Stage, camera: str, step: int) -> Side:
        """The side of the view that a model is shown in place of the `wanted` one."""
        return wanted if stage in self.stages and self.holds(camera, step) else "reference"

    @property
    def is_whole_image(self) -> bool:
        """Whether images are distorted in all regions."""
        return set(self.regions) == set(REGIONS)
