"""A ResNet18 that has seen the cell, for a policy of LeRobot where no network of photographs can be downloaded.

    python tools/train/lerobot_backbone.py DATASET CHECKPOINT [--first 40] [--steps 1500]

In an environment with LeRobot. DATASET is an export of `merton export lerobot`; CHECKPOINT is the folder
`pretrained_model` of an ACT policy trained for one step, whose `model.safetensors` gets the backbone. LeRobot's ACT
freezes the batch normalisation of its backbone, which fits weights that have seen photographs; with weights drawn by
chance the pictures hardly reach the policy. Here the network learns from each picture of the first third of an
episode, in which the arm does not show it yet, where the arm will end: the joints of the episode's last row. Its error
in the last twentieth of the episodes is printed in standard deviations of each joint: 1.00 is no knowledge.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

import av
import numpy as np
import pyarrow.dataset
import torch
import torchvision
from safetensors.torch import load_file, save_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

PREFIX = "model.backbone."
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # lerobot-train scales pictures by them
BATCH = 32
RATE = 1e-3


class Seen(torch.nn.Module):
    """The backbone as ACT uses it, up to its last map, and a head that reads the target there."""

    def __init__(self, height: int, width: int, targets: int) -> None:
        super().__init__()
        self.net = torchvision.models.resnet18(weights=None)
        cells = -(-height // 32) * -(-width // 32)
        self.head = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(512 * cells, 128), torch.nn.ReLU(), torch.nn.Linear(128, targets)
        )

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Targets of `pictures` (n, 3, height, width), (n, targets)."""
        seen = self.net.maxpool(self.net.relu(self.net.bn1(self.net.conv1(pictures))))
        for layer in (self.net.layer1, self.net.layer2, self.net.layer3, self.net.layer4):
            seen = layer(seen)
        return self.head(seen)


def rows_of(dataset: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Actions (n, 7) and episodes (n,) of all rows, in the order of the pictures."""
    columns = ["action", "episode_index", "index"]
    table = pyarrow.dataset.dataset(dataset / "data").to_table(columns=columns).sort_by("index").to_pydict()
    return np.array(table["action"], np.float32), np.array(table["episode_index"])


def pictures_of(dataset: Path, camera: str) -> NDArray[np.uint8]:
    """All pictures of a camera (n, height, width, 3), RGB."""
    frames = []
    for file in sorted((dataset / "videos" / f"observation.images.{camera}").rglob("*.mp4")):
        with av.open(str(file)) as film:
            frames += [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    return np.stack(frames)


def ends(actions: NDArray[np.float32], episodes: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """For each row the joints [rad] of its episode's last one (n, 6), and whether it is of the first third (n,)."""
    target, early = np.zeros((len(actions), 6), np.float32), np.zeros(len(actions), bool)
    for episode in np.unique(episodes):
        rows = np.flatnonzero(episodes == episode)
        target[rows], early[rows[: -(-len(rows) // 3)]] = actions[rows[-1], :6], True
    return target, early


def scaled(pictures: NDArray[np.uint8]) -> torch.Tensor:
    """Pictures (n, height, width, 3) as the policy gets them, (n, 3, height, width)."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255 - mean) / std


def trained(pictures: NDArray[np.uint8], target: NDArray[np.float32], known: NDArray[np.bool_], steps: int) -> Seen:
    """The network after `steps` batches of the rows that are `known`; prints its error on the others."""
    generator = np.random.default_rng(0)
    network = Seen(*pictures.shape[1:3], target.shape[1]).to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=1e-2)
    rows, others = np.flatnonzero(known), np.flatnonzero(~known)
    begun = time.monotonic()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, step / 50 + 0.01) * (0.5 + 0.5 * np.cos(np.pi * step / steps))
        drawn = generator.choice(rows, BATCH)
        views = scaled(pictures[drawn]) * (1 + 0.1 * torch.randn(BATCH, 1, 1, 1))
        views = (views + 0.05 * torch.randn_like(views)).to(memory_format=torch.channels_last)
        with torch.autocast("cpu", torch.bfloat16):  # a processor with its instructions needs half the time
            found = network(views)
        error = torch.nn.functional.smooth_l1_loss(found.float(), torch.from_numpy(target[drawn]))
        optimizer.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        if (step + 1) % 250 == 0 or step + 1 == steps:
            left_min = (time.monotonic() - begun) / (step + 1) * (steps - step - 1) / 60
            shown = errors(network, pictures, target, others)
            print(f"{step + 1} of {steps} steps, {left_min:.0f} min left; error of new episodes {shown}", flush=True)
    return network


def errors(network: Seen, pictures: NDArray[np.uint8], target: NDArray[np.float32], rows: NDArray[np.int64]) -> str:
    """Root mean square error of each target, in its standard deviations."""
    network.eval()
    with torch.no_grad():
        found = [network(scaled(pictures[part])).numpy() for part in np.array_split(rows, -(-len(rows) // 64))]
    network.train()
    return " ".join(f"{error:.2f}" for error in np.sqrt(((np.concatenate(found) - target[rows]) ** 2).mean(axis=0)))


def main(dataset: Path, checkpoint: Path, camera: str, first: int, steps: int) -> None:
    """Train, and put the network into the checkpoint."""
    torch.manual_seed(0)
    actions, episodes = rows_of(dataset)
    pictures = pictures_of(dataset, camera)
    if len(pictures) != len(actions):
        raise SystemExit(f"{dataset}: {len(pictures)} pictures of {camera}, {len(actions)} rows")
    target, early = ends(actions, episodes)
    early &= episodes >= first
    pictures, target, known = pictures[early], target[early], episodes[early] < np.quantile(episodes, 0.95)
    mean, std = target[known].mean(axis=0), target[known].std(axis=0)
    moving = std > 1e-3  # a joint that always ends alike teaches nothing
    network = trained(pictures, (target[:, moving] - mean[moving]) / std[moving], known, steps)
    weights = load_file(checkpoint / "model.safetensors")
    begin = {f"{PREFIX}{name}": value for name, value in network.net.state_dict().items()}
    names = [name for name in weights if name.startswith(PREFIX)]
    if not names or any(name not in begin for name in names):
        raise SystemExit(f"{checkpoint}: its backbone is no ResNet18")
    save_file(
        weights | {name: begin[name].contiguous() for name in names}, checkpoint / "model.safetensors", {"format": "pt"}
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--camera", default="top")
    parser.add_argument("--first", type=int, default=0, help="the episodes before it are left for the evaluation")
    parser.add_argument("--steps", type=int, default=1500)
    given = parser.parse_args()
    main(given.dataset, given.checkpoint, given.camera, given.first, given.steps)
