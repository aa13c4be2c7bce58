"""Right answers of a learned VLM: python tools/train/vlm_answers.py gaze FOLDER --split test --scenes 100.

Undistorted. Of five tasks in each scene it counts the answers whose thing, whose place, whose neighbour and whose plan
are those of the scene, and the answers that are right as a whole, by difficulty. The scene is the unit of the interval
(exact, Clopper and Pearson): a scene is right if all five answers are. FOLDER takes the scenes (`split_samples.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from split_samples import BLOCK, SplitSamples, load
from vla_success import interval
from vlm_samples import PictureThings, tasks_of, things_of

from merton.cognition.models.base import MODELS, VisionLanguageModel, question_for
from merton.world.tasks import SPLITS

PARTS = ("thing", "place", "neighbour", "plan", "whole")
NAMELESS = ("left", "center", "right", "near", "middle", "far")


def parts(answer: str) -> tuple[str, str, str, str, str]:
    """Thing, place, neighbour and plan of an answer, and the whole; empty where the answer has no such part."""
    head, _, plan = answer.lower().rstrip(".").partition("; ")
    said, _, neighbour = head.partition(", beside ")
    words = said.split()
    name = " ".join(word for word in words if word not in NAMELESS)
    return name, " ".join(word for word in words if word in NAMELESS), neighbour, plan, answer.lower()


def right(
    model: VisionLanguageModel, samples: SplitSamples, scenes: Sequence[PictureThings], colors: bool
) -> NDArray[np.bool_]:
    """(scenes, 5 tasks, `PARTS`): which parts of the answers are right."""
    rows = []
    for number, (seen, image) in enumerate(zip(scenes, samples.images("top"), strict=False)):
        for text in tasks_of(samples, number):
            given = parts(model.answer([image], question_for(text)).text)
            wanted = parts(seen.answer(text, colors=colors))
            rows.append([one == other for one, other in zip(given, wanted, strict=True)])
    return np.array(rows).reshape(len(scenes), -1, len(PARTS))


def row(name: str, found: NDArray[np.bool_]) -> str:
    """A member in Markdown."""
    shares = " | ".join(f"{100 * share:.0f} %" for share in found.mean((0, 1)))
    levels = " | ".join(f"{100 * share:.0f} %" for share in found[..., -1].mean(0))
    whole = found[..., 0].all(1) & found[..., 1].all(1)
    low, high = interval(int(whole.sum()), len(whole))
    return f"| `{name}` | {shares} | {levels} | {whole.sum()} of {len(whole)}, {100 * low:.0f} to {100 * high:.0f} % |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("members", nargs="+", help="names in the catalogue")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", choices=SPLITS, default="val")
    parser.add_argument("--scenes", type=int, default=50)
    chosen = parser.parse_args()
    samples = load(chosen.folder / "samples", chosen.split, range(-(-chosen.scenes // BLOCK) * BLOCK))
    scenes = things_of(samples, chosen.folder)[: chosen.scenes]
    print(f"| VLM | {' | '.join(PARTS)} | 1 | 2 | 3 | 4 | 5 | all things and places of a scene |")
    print(f"|{'---|' * 12}")
    for name in chosen.members:
        print(row(name, right(MODELS[name].build(), samples, scenes, not name.endswith("grey"))), flush=True)


if __name__ == "__main__":
    main()
