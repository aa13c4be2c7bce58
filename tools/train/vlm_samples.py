"""Truth that learned VLMs are taught about the scenes of `split_samples`: things that the picture shows, and places.

Every named thing of a scene is an example, so that the five tasks of a scene have one truth in common.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from split_samples import TASKS_PER_SCENE, SplitSamples

from merton.cognition.models.gaze import SIDE_PX, Sight, sentence
from merton.simulation.scene import make_scene
from merton.simulation.varied import verbs_of
from merton.world.nouns import meant, noun
from merton.world.tasks import parse

HEIGHT_M = 0.02
"""Height above the table at which a thing is projected into the picture. Ours: about half of a cube."""


@dataclass(frozen=True)
class PictureThings:
    """The named things of a scene in the picture from above.

    Attributes:
        names: such as "small red cube".
        places_m: names to x, y [m] in `base_link`.
        places_px: (things, 2) as `Sight.place_px`.
    """

    names: tuple[str, ...]
    places_m: dict[str, tuple[float, float]]
    places_px: NDArray[np.float64]

    def index(self, said: str) -> int:
        """Number of the thing that a noun means, in `names`."""
        return self.names.index(meant(said, self.places_m))

    def beside(self, index: int) -> int:
        """The thing that is nearest in the picture to another."""
        away = np.linalg.norm(self.places_px - self.places_px[index], axis=1)
        away[index] = np.inf
        return int(away.argmin())

    def sight(self, index: int, *, colors: bool = True) -> Sight:
        """A thing as it is to be seen; without its colour for a member that sees none."""
        said, (u, v) = noun(self.names[index]), self.places_px[index]
        return Sight(said.color if colors else "", said.shape, (float(u), float(v)))

    def answer(self, instruction: str, *, colors: bool = True) -> str:
        """The right answer to the question for an instruction."""
        command = parse(instruction)
        thing = self.index(command.object)
        target = self.sight(self.index(command.target), colors=colors) if command.target else None
        beside = self.sight(self.beside(thing), colors=colors)
        return sentence(command, self.sight(thing, colors=colors), beside, target)


def things_of(samples: SplitSamples, folder: Path) -> list[PictureThings]:
    """The things of each scene; kept in `folder`, because layouts take 20 ms each."""
    file = folder / f"things_{samples.split}_{samples.seeds.start:06d}_{len(samples.seeds)}.json"
    if not file.exists():
        found = []
        for seed in samples.seeds:
            scene = make_scene(f"{samples.split}-{verbs_of(seed)[0]}", seed)
            found.append({name: spot[:2] for name, spot in (scene.placements | scene.mats).items()})
        file.write_text(json.dumps(found))
    camera_from_base = np.linalg.inv(samples.base_from_camera["top"])
    lens = samples.intrinsics
    center, scale = np.array([(lens.width - 1) / 2, (lens.height - 1) / 2]), SIDE_PX / lens.height
    result = []
    for things in json.loads(file.read_text()):
        points = np.array([[x, y, HEIGHT_M, 1.0] for x, y in things.values()]) @ camera_from_base.T
        pixels = np.array([lens.project(point[:3]) for point in points])
        places = {name: (float(x), float(y)) for name, (x, y) in things.items()}
        result.append(PictureThings(tuple(things), places, scale * (pixels - center)))
    return result


def tasks_of(samples: SplitSamples, scene: int) -> list[str]:
    """The five instructions of a scene, by its number among the samples."""
    return samples.instructions[TASKS_PER_SCENE * scene : TASKS_PER_SCENE * (scene + 1)]
