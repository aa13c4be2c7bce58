"""Train merton-tiny-vla by behaviour cloning: python tools/train/train_tiny_vla.py [OUTPUT.npz] [--scenes N].

Needs torch (pip install torch==2.13.0); a GPU is used if there is one. Draws `--scenes` scenes of every task from
seeds that no experiment uses, records the oracle's motion in each, and fits the network of
`merton.decision.models.tiny_vla` to it. Scenes are stored in build/scene_samples, and the state of the training every
few hundred steps, so that both continue after an interruption. At the end every task is tested in closed loop on
held-out scenes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scene_samples import HELD_OUT_SEEDS, TRAINING_SEEDS, Samples, load
from torch import Tensor, nn
from training_loop import Loss, save, train

from merton.decision.models import tiny_vla
from merton.decision.models.tiny_vla import (
    CROP,
    POINTS,
    SEGMENT_SIZE,
    SEGMENTS,
    SLOTS,
    STRIDE,
    from_deltas,
    table_points,
    tokens,
)
from merton.execution.kinematics import base_from_tcp
from merton.experiment.local import LocalPorts
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.cell import load_cell
from merton.world.tasks import TASKS

NARROW, CHANNELS = 16, 32
TEXT = 64
HIDDEN = 256
BATCH = 32
CENTER = (0.5, 0.0)
SIZE = tuple((side.stop - side.start) // STRIDE for side in CROP)
"""Height and width of the feature map."""


class TinyVlaNetwork(nn.Module):
    """`merton.decision.models.tiny_vla.Network` in torch, for batches and with gradients."""

    def __init__(self, words: int, pixel_to_table: NDArray[np.float64], mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self.words_embedded = nn.Parameter(torch.randn(SLOTS, words + 2, TEXT) * 0.3)
        self.text1, self.text2 = nn.Linear(TEXT, TEXT), nn.Linear(TEXT, TEXT)
        self.conv1 = nn.Conv2d(3 * STRIDE**2, NARROW, 3, padding=1)
        self.conv2 = nn.Conv2d(NARROW, NARROW, 3, padding=1)
        self.film = nn.Linear(TEXT, 2 * NARROW)
        self.point1, self.point2 = nn.Conv2d(NARROW, CHANNELS, 1), nn.Conv2d(CHANNELS, CHANNELS, 1)
        self.queries = nn.Linear(TEXT, POINTS * CHANNELS)
        self.mixture = nn.Linear(TEXT, SEGMENTS * 2 * 2 * POINTS)
        self.motion1 = nn.Linear(TEXT + 2 * POINTS + POINTS * CHANNELS, HIDDEN)
        self.motion2 = nn.Linear(HIDDEN, HIDDEN)
        self.motion3 = nn.Linear(HIDDEN, SEGMENTS * SEGMENT_SIZE)
        with torch.no_grad():
            self.mixture.weight *= 0.1
            self.motion3.weight *= 0.1
        self.register_buffer("center", torch.tensor(CENTER))
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)
        self.register_buffer("homography", torch.from_numpy(pixel_to_table).float(), persistent=False)

    def forward(self, images: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The motion for images (batch, 3, height, width) 0..1 and words (batch, SLOTS).

        Returns:
            Segments (batch, SEGMENTS, SEGMENT_SIZE), points on the table (batch, POINTS, 2) [m], and the logits of
            their attention (batch, POINTS, positions).
        """
        embedded = self.words_embedded[torch.arange(SLOTS, device=numbers.device), numbers].sum(1)
        text = self.text2(self.text1(embedded).relu()).relu()
        signal = self.conv2(self.conv1(nn.functional.pixel_unshuffle(images - 0.5, STRIDE)).relu())
        scale, shift = self.film(text)[:, :, None, None].chunk(2, 1)
        signal = self.point2(self.point1((signal * (1 + scale) + shift).relu()).relu())
        count, channels, height, width = signal.shape
        flat = signal.reshape(count, channels, -1)
        logits = self.queries(text).reshape(count, POINTS, channels) @ flat
        attention = logits.softmax(-1)
        v, u = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([u.flatten(), v.flatten(), torch.ones(height * width)], 1).float().to(flat.device)
        projected = attention @ grid @ self.homography.T  # attention sums to 1, so the last column stays 1
        points = projected[..., :2] / projected[..., 2:]
        seen = (attention @ flat.transpose(1, 2)).flatten(1)
        centered = (points - self.center).flatten(1)
        hidden = torch.cat([text, centered / 0.15, seen], 1)
        raw = self.motion3(self.motion2(self.motion1(hidden).relu()).relu())
        segments = raw.reshape(count, SEGMENTS, SEGMENT_SIZE) * self.spread + self.mean
        mixture = self.mixture(text).reshape(count, SEGMENTS, 2, 2 * POINTS)
        ends = segments[..., :2] + (mixture @ centered[:, None, :, None])[..., 0]
        return torch.cat([ends, segments[..., 2:]], -1), points, logits


def pixel_to_table() -> NDArray[np.float64]:
    """Homography (3, 3) from homogeneous (u, v, 1) in the feature map to (x, y, 1) on the table [m]."""
    cameras = SceneCameras(tiny_vla.VIEW_WIDTH, tiny_vla.VIEW_HEIGHT)
    cell = SimulatedCell()
    cell.reset("reach", 0)
    view = cameras.render("reach", 0, cell.qpos, tiny_vla.CAMERA)
    cameras.close()
    height, width = SIZE
    corners = np.array([[0, 0], [width, 0], [0, height], [width, height]], np.float64)
    rows = []
    for (u, v), (x, y) in zip(corners, table_points(view, corners), strict=True):
        rows += [[u, v, 1, 0, 0, 0, -x * u, -x * v, -x], [0, 0, 0, u, v, 1, -y * u, -y * v, -y]]
    return np.linalg.svd(np.array(rows))[2][-1].reshape(3, 3)


def prepared(samples: Samples, words: tuple[str, ...], homography: NDArray[np.float64]) -> dict[str, Tensor]:
    """The data that batches are drawn from."""
    cell = load_cell()
    start = base_from_tcp(cell.home_joints, cell)[:3, 3]
    segments = np.zeros((len(samples), SEGMENTS, SEGMENT_SIZE))
    for index, deltas in enumerate(samples.deltas):
        found = from_deltas(deltas, start)
        if len(found) > SEGMENTS:
            raise SystemExit(f"{samples.instructions[index]!r} takes {len(found)} segments, more than {SEGMENTS}")
        segments[index, : len(found)] = found
    homogeneous = (
        np.concatenate([samples.keypoints, np.ones((len(samples), POINTS, 1))], -1) @ np.linalg.inv(homography).T
    )
    return {
        "images": torch.from_numpy(samples.images).permute(0, 3, 1, 2).contiguous(),
        "words": torch.from_numpy(np.stack([tokens(text, words) for text in samples.instructions])),
        "segments": torch.from_numpy(segments).float(),
        "keypoints": torch.from_numpy(samples.keypoints).float(),
        "pixels": torch.from_numpy(homogeneous[..., :2] / homogeneous[..., 2:]).float(),
    }


def augmented(images: Tensor, rng: torch.Generator) -> Tensor:
    """Random strength and colour of light, and contrast; (batch, 3, h, w) uint8 to 0..1."""
    count = len(images)
    gain = 0.85 + 0.3 * torch.rand(count, 1, 1, 1, generator=rng)
    tint = 0.94 + 0.12 * torch.rand(count, 3, 1, 1, generator=rng)
    offset = 0.06 * (torch.rand(count, 1, 1, 1, generator=rng) - 0.5)
    return (images.float() / 255 * (gain * tint).to(images.device) + offset.to(images.device)).clamp(0, 1)


def losses(segments: Tensor, points: Tensor, logits: Tensor, truth: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Errors of the motion and of the points, in centimetres, and the cross entropy of the attention."""
    wanted = truth["segments"]
    present = wanted[..., 8]
    scale = torch.tensor([0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 0.1, 0.3], device=segments.device)
    error = nn.functional.smooth_l1_loss(segments[..., :8] / scale, wanted[..., :8] / scale, reduction="none").mean(-1)
    motion = (error * present).sum() / present.sum()
    motion = motion + 2 * nn.functional.binary_cross_entropy_with_logits(segments[..., 8], present)
    known = ~truth["pixels"].isnan().any(-1)
    pixels = truth["pixels"].nan_to_num()
    distance = nn.functional.smooth_l1_loss(points / 0.01, truth["keypoints"].nan_to_num() / 0.01, reduction="none")
    height, width = SIZE
    v, u = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    grid = torch.stack([u.flatten(), v.flatten()], -1).float().to(logits.device)
    near = (-((grid - pixels[:, :, None]) ** 2).sum(-1) / (2 * 0.8**2)).softmax(-1)
    elsewhere = -(near * logits.log_softmax(-1)).sum(-1)
    return (
        motion,
        (distance.mean(-1) * known).sum() / known.sum(),
        (elsewhere * known).sum() / known.sum(),
    )


def loss_of_steps(network: TinyVlaNetwork, data: dict[str, Tensor], device: str) -> Callable[[int], Loss]:
    """The loss of a step."""

    def loss_of(step: int) -> Loss:
        rng = torch.Generator().manual_seed(step)
        rows = torch.randint(len(data["words"]), (BATCH,), generator=rng)
        batch = {name: values[rows].to(device) for name, values in data.items()}
        parts = losses(*network(augmented(batch["images"], rng), batch["words"]), batch)
        return parts[0] + 0.3 * parts[1] + parts[2], parts

    return loss_of


def closed_loop(tasks: list[str], scenes: int) -> dict[str, float]:
    """Share of held-out scenes in which each task succeeds, with the weights in the package."""
    ports, policy, shares = LocalPorts(), tiny_vla.TinyVla(), {}
    for task in tasks:
        done = 0
        for seed in range(HELD_OUT_SEEDS, HELD_OUT_SEEDS + scenes):
            instruction = ports.reset(task, seed)
            view = ports.view()
            ports.execute(policy.act(view.observation("reference", instruction)), view)
            done += ports.view().success
        shares[task] = done / scenes
        print(f"{task}: {done} of {scenes}", flush=True)
    return shares


def main() -> None:
    """Draw scenes, train, save, test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", nargs="?", type=Path, default=tiny_vla.WEIGHTS)
    parser.add_argument("--scenes", type=int, default=2000, help="scenes of every task")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    samples = load(arguments.tasks, range(TRAINING_SEEDS, TRAINING_SEEDS + arguments.scenes))
    words = tuple(sorted({word for text in samples.instructions for word in text.lower().split()}))
    homography = pixel_to_table()
    data = prepared(samples, words, homography)
    present = data["segments"][..., 8] > 0
    used = data["segments"][present]
    mean, spread = used.mean(0), used.std(0).clamp(min=0.05)
    mean[8], spread[8] = 0.0, 1.0
    network = TinyVlaNetwork(len(words), homography, mean, spread)
    state_file = Path("build/scene_samples") / "tiny_vla_training.pt"
    started = time.process_time()
    for step, (motion, points, attention) in train(
        network.to(device), arguments.steps, state_file, loss_of_steps(network, data, device)
    ):
        if step % 100 == 0:
            line = f"step {step}: motion {motion:.3f}, points {points:.3f}, attention {attention:.2f}"
            print(f"{line}; {time.process_time() - started:.0f} s", flush=True)
    save(network, words, arguments.output)
    state_file.unlink()
    print(f"{arguments.output}: {arguments.output.stat().st_size / 1e6:.2f} MB")
    if arguments.output == tiny_vla.WEIGHTS:
        shares = closed_loop(arguments.tasks, 20)
        print(f"mean: {100 * sum(shares.values()) / len(shares):.0f} %")


if __name__ == "__main__":
    main()
