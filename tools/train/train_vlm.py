"""Train a learned VLM: python tools/train/train_vlm.py MEMBER FOLDER.

Needs torch. FOLDER takes the scenes of the split `train` (`split_samples.py`), which the learned policies use too, and
the state of the training, so that both go on after an interruption. The weights go into the package. The same member,
scenes and steps give the same weights on the same machine with one thread (OMP_NUM_THREADS=1).
`vlm_answers.py` then counts the member's right answers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import training_loop
from split_samples import SplitSamples, load
from torch import Tensor, nn
from training_loop import Light, Loss, relit, save
from vlm_lessons import gaze_losses, gaze_truth, scribe_losses, scribe_truth, scribe_words
from vlm_networks import GazeNetwork, ScribeNetwork
from vlm_samples import PictureThings, things_of

from merton.cognition.models.gaze import prepared
from merton.cognition.models.learned import FOLDER
from merton.world.nouns import noun

SCENES_PER_BATCH = 8
LIGHT = Light(gain=0.6, tint=0.3, offset=0.16)
LOSSES = {"gaze": ("things", "neighbours", "names"), "scribe": ("words", "looks")}


@dataclass(frozen=True)
class Member:
    """The part of the training in which a member differs from the others.

    Attributes:
        seed: of the first weights and of the batches.
        kind: "gaze" or "scribe", the adapter.
        channels: 3, or 1 for grey.
        shrink: 2 for half of the pixels each way.
        width: features of a place.
        scenes: how many it learns from.
        light: whether light, colour and contrast of the images vary.
        steps: of the optimizer.
    """

    seed: int
    kind: str = "gaze"
    channels: int = 3
    shrink: int = 1
    width: int = 40
    scenes: int = 1700
    light: bool = True
    steps: int = 2000


MEMBERS = {
    "gaze": Member(seed=1),
    "gaze-plain": Member(seed=2, light=False, steps=1000),
    "gaze-grey": Member(seed=3, channels=1, steps=1000),
    "gaze-small": Member(seed=4, shrink=2, width=20, scenes=850),
    "scribe": Member(seed=5, kind="scribe", shrink=2, steps=1200),
}


def images_of(samples: SplitSamples, member: Member, folder: Path) -> Tensor:
    """(n, channels, rows, columns) uint8, as the member sees the scenes; kept in `folder`."""
    file = folder / f"seen_{samples.split}_{len(samples.seeds)}_{member.channels}_{member.shrink}.npy"
    if not file.exists():
        np.save(file, [prepared(image, member.channels, member.shrink) for image in samples.images("top")])
    return torch.from_numpy(np.load(file))


def words_of(samples: SplitSamples, scenes: list[PictureThings], member: Member) -> tuple[str, ...]:
    """The words that a member knows: all of a scribe, the shapes of a gaze."""
    if member.kind == "scribe":
        return scribe_words(samples, scenes)
    return tuple(sorted({noun(name).shape for scene in scenes for name in scene.names}))


def truth_of(
    samples: SplitSamples, scenes: list[PictureThings], words: tuple[str, ...], member: Member
) -> dict[str, Tensor]:
    """The truth that a batch needs beside the images, (n, ...)."""
    return (scribe_truth if member.kind == "scribe" else gaze_truth)(samples, scenes, words)


def new_network(words: tuple[str, ...], member: Member) -> nn.Module:
    """Untrained."""
    torch.manual_seed(member.seed)
    if member.kind == "scribe":
        network: nn.Module = ScribeNetwork(len(words), width=member.width)
    else:
        network = GazeNetwork(member.channels, member.shrink, member.width, len(words))
    return network.to(memory_format=torch.channels_last)


def train(
    network: nn.Module, member: Member, images: Tensor, truth: dict[str, Tensor], state_file: Path
) -> Iterator[tuple[int, tuple[float, ...]]]:
    """Yields the step and its losses, in the order of the member's kind."""
    losses: Callable[..., tuple[Tensor, ...]] = scribe_losses if member.kind == "scribe" else gaze_losses

    def loss_of(step: int) -> Loss:
        rng = torch.Generator().manual_seed(1_000_003 * member.seed + step)
        scenes = torch.randint(len(images), (SCENES_PER_BATCH,), generator=rng)
        batch = images[scenes].float().contiguous(memory_format=torch.channels_last) / 255
        chosen = {name: values[scenes] for name, values in truth.items()}
        parts = losses(network, (relit(batch, rng, LIGHT) if member.light else batch) - 0.5, chosen, rng)
        return torch.stack(parts).sum(), parts

    return training_loop.train(network, member.steps, state_file, loss_of, rate=3e-3, weight_decay=1e-3)


def main() -> None:
    """Draw scenes, train, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("member", choices=MEMBERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, help="file of the weights; by default that of the package")
    arguments = parser.parse_args()
    member, folder = MEMBERS[arguments.member], arguments.folder
    samples = load(folder / "samples", "train", range(member.scenes))
    scenes = things_of(samples, folder)
    words = words_of(samples, scenes, member)
    truth, images = truth_of(samples, scenes, words, member), images_of(samples, member, folder)
    network = new_network(words, member)
    state_file = folder / f"{arguments.member}_{member.scenes}_{member.steps}.pt"
    started = time.process_time()
    for step, found in train(network, member, images, truth, state_file):
        if step % 100 == 0:
            losses = ", ".join(f"{name} {loss:.2f}" for name, loss in zip(LOSSES[member.kind], found, strict=True))
            print(f"step {step}: {losses}; {time.process_time() - started:.0f} s", flush=True)
    output = arguments.output or FOLDER / f"{arguments.member}.npz"
    save(network, words, output)
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
