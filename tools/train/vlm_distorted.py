"""Effect of distortion on VLMs: python tools/train/vlm_distorted.py FOLDER gaze scribe --split test --scenes 10.

Prints the mean Cognition score of each type and level, of the answers to the five tasks of each scene against those of
the same VLM to the undistorted image. All VLMs see the same images. FOLDER takes the scenes (`split_samples.py`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from split_samples import BLOCK, SplitSamples, load
from vlm_samples import tasks_of

from merton.cognition.models.base import MODELS, Question, VisionLanguageModel, question_for
from merton.cognition.score import score_batch
from merton.cognition.text import Cider
from merton.perception.distortion import DISTORTIONS, distort
from merton.seeding import generator
from merton.world.observation import Image
from merton.world.tasks import SPLITS


def answers(model: VisionLanguageModel, samples: SplitSamples, images: list[Image]) -> list[str]:
    """The answers to the five tasks of each scene."""
    asked = [
        Question((image,), question_for(text))
        for number, image in enumerate(images)
        for text in tasks_of(samples, number)
    ]
    return [each.text for each in model.answer_batch(asked) if not isinstance(each, Exception)]


def scores(
    models: list[VisionLanguageModel], samples: SplitSamples, images: list[Image], levels: list[int]
) -> dict[str, NDArray[np.float64]]:
    """Type to the scores (models, levels, scenes)."""
    undistorted = [answers(model, samples, images) for model in models]
    corpora = [Cider(texts) for texts in undistorted]
    found = {}
    for name in DISTORTIONS:
        rows = np.zeros((len(models), len(levels), len(images)))
        for column, level in enumerate(levels):
            worse = [
                distort(image, name, level, generator("vlm_distorted", name, level, seed))
                for image, seed in zip(images, samples.seeds, strict=False)
            ]
            for row, (model, before, cider) in enumerate(zip(models, undistorted, corpora, strict=True)):
                total = score_batch(before, answers(model, samples, worse), cider).total
                rows[row, column] = total.reshape(len(images), -1).mean(1)
        found[name] = rows
        print(f"| `{name}` | {' | '.join(_cells(row) for row in rows)} |", flush=True)
    return found


def _cells(row: NDArray[np.float64]) -> str:
    return ", ".join(f"{mean:.2f}" for mean in row.mean(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("members", nargs="+", help="names in the catalogue")
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--scenes", type=int, default=10)
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 3, 5])
    chosen = parser.parse_args()
    samples = load(chosen.folder / "samples", chosen.split, range(-(-chosen.scenes // BLOCK) * BLOCK))
    images = list(samples.images("top"))[: chosen.scenes]
    print(f"| levels {', '.join(map(str, chosen.levels))} | {' | '.join(f'`{name}`' for name in chosen.members)} |")
    print(f"|{'---|' * (len(chosen.members) + 1)}", flush=True)
    found = scores([MODELS[name].build() for name in chosen.members], samples, images, chosen.levels)
    print(f"| all | {' | '.join(_cells(row) for row in np.mean(list(found.values()), 0))} |")


if __name__ == "__main__":
    main()
