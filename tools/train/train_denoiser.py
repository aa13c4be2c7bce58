"""Train the network of cnn_denoise: python tools/train/train_denoiser.py [OUTPUT.onnx] [--steps N].

Needs torch and onnx (pip install torch==2.13.0 onnx==1.23.2); about 20 minutes on two cores. Images: textures with the
1/f spectrum of natural scenes under random shapes and shading, and renders of the embedded cell. Noise: additive white
Gaussian, rounded and clipped to 8 bits as in `distort`, of a deviation drawn from 0.08 .. 0.40. Everything is
seeded; held-out images come from other seeds. The mean gain in PSNR on those is printed at the end.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from merton.perception.distortion.denoiser import NETWORK, denoise
from merton.simulation.cameras import SceneCameras
from merton.simulation.cell import SimulatedCell
from merton.world.observation import Image

CHANNELS, LAYERS = 32, 6
PATCH_PX, BATCH = 64, 24
DEVIATIONS = (0.08, 0.40)
HELD_OUT_SEED = 1000


def procedural(seed: int, side: int = 256) -> Image:
    """A texture with the spectrum of natural scenes, shading, and shapes with hard edges."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None, :])
    frequency[0, 0] = np.inf
    exponent, mixing = rng.uniform(0.9, 1.7), rng.normal(size=(3, 3)) * 0.4 + 1.0
    planes = []
    for _ in range(3):
        plane = np.fft.irfft2(np.fft.rfft2(rng.normal(size=(side, side))) / frequency**exponent, s=(side, side))
        planes.append(plane / plane.std())
    texture = np.stack(planes, axis=2) @ mixing / 2
    image = np.clip(rng.uniform(60, 190, 3) + rng.uniform(5, 60) * texture, 0, 255).astype(np.uint8)
    for _ in range(int(rng.integers(0, 14))):
        color = tuple(int(value) for value in rng.integers(0, 256, 3))
        start, end = (tuple(int(value) for value in rng.integers(0, side, 2)) for _ in range(2))
        shape = rng.integers(0, 3)
        if shape == 0:
            cv2.rectangle(image, start, end, color, -1)
        elif shape == 1:
            cv2.circle(image, start, int(rng.integers(3, 50)), color, -1, cv2.LINE_AA)
        else:
            cv2.line(image, start, end, color, int(rng.integers(1, 8)), cv2.LINE_AA)
    return image


def renders(first_seed: int, count: int) -> list[Image]:
    """Images of all cameras of the cell in scenes `first_seed` .. `first_seed + count - 1`."""
    cell, cameras = SimulatedCell(), SceneCameras(424, 240)
    pictures = []
    for seed in range(first_seed, first_seed + count):
        task = ("reach", "push", "pick", "place")[seed % 4]
        cell.reset(task, seed)
        pictures += [cameras.render(task, seed, cell.qpos, name).color for name in cameras.names]
    cameras.close()
    return pictures


def network() -> nn.Sequential:
    """Convolutions as `denoise` runs them: 12 folded channels and the deviation in, the noise out."""
    widths = [13, *[CHANNELS] * (LAYERS - 1), 12]
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def batch(images: list[Image], rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Noisy and clean patches (batch, 3, side, side) in 0..1, and the deviations (batch,)."""
    clean = np.empty((BATCH, PATCH_PX, PATCH_PX, 3), np.float32)
    for index in range(BATCH):
        image = images[rng.integers(len(images))]
        y, x = (rng.integers(0, size - PATCH_PX + 1) for size in image.shape[:2])
        patch = image[y : y + PATCH_PX, x : x + PATCH_PX]
        patch = np.rot90(patch[:, :: rng.choice((-1, 1))], rng.integers(4))
        clean[index] = patch[..., rng.permutation(3)] / np.float32(255)
    deviations = rng.uniform(*DEVIATIONS, BATCH).astype(np.float32)
    noisy = add_noise(clean, deviations[:, None, None, None], rng)
    planes = (torch.from_numpy(array.transpose(0, 3, 1, 2).copy()) for array in (noisy, clean))
    return (*planes, torch.from_numpy(deviations))  # type: ignore[return-value]


def add_noise(
    clean: NDArray[np.float32], deviation: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """White Gaussian noise, then rounded and clipped to 8 bits."""
    noisy = clean + deviation * rng.standard_normal(clean.shape, dtype=np.float32)
    return np.rint(255 * noisy.clip(0, 1)).astype(np.float32) / 255


def train(net: nn.Sequential, images: list[Image], steps: int) -> None:
    """Least squares relative to the noise, so that weak noise counts as much; the rate falls along a half cosine."""
    rng = np.random.default_rng(1)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(1, steps + 1):
        noisy, clean, deviations = batch(images, rng)
        folded = nn.functional.pixel_unshuffle(noisy, 2)
        level = deviations[:, None, None, None].expand(-1, 1, *folded.shape[2:])
        restored = folded - net(torch.cat([folded, level], dim=1))
        error = ((restored - nn.functional.pixel_unshuffle(clean, 2)) ** 2).mean(dim=(1, 2, 3))
        loss = (error / deviations**2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: {-10 * np.log10(loss.item()):.2f} dB less noise in the batch", flush=True)


def save(net: nn.Sequential, path: Path) -> None:
    """Write the network for images of any size, its weights rounded to float16 and stored as float32."""
    rounded = net.half().float()
    sides = {2: "height", 3: "width"}
    torch.onnx.export(
        rounded,
        (torch.zeros(1, 13, 8, 8),),
        str(path),
        dynamo=False,  # the other exporter needs one more package
        input_names=["folded"],
        output_names=["noise"],
        dynamic_axes={"folded": sides, "noise": sides},
    )


def report_gain() -> None:
    """PSNR before and after on held-out images, with the weights in the package, by the code of the package."""
    images = [procedural(HELD_OUT_SEED + index) for index in range(6)] + renders(HELD_OUT_SEED, 2)
    for variance in (0.01, 0.03, 0.05, 0.1, 0.15):
        before, after = [], []
        for index, image in enumerate(images):
            clean, rng = image.astype(np.float32) / 255, np.random.default_rng(index)
            noisy = np.rint(255 * add_noise(clean, np.float32(variance**0.5), rng)).astype(np.uint8)
            before.append(cv2.PSNR(image, noisy))
            after.append(cv2.PSNR(image, denoise(noisy, variance**0.5)))
        print(f"variance {variance}: {np.mean(before):.2f} dB noisy, {np.mean(after):.2f} dB denoised")


def main() -> None:
    """Make the images, train, save, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", nargs="?", type=Path, default=NETWORK)
    parser.add_argument("--steps", type=int, default=20_000)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    net = network()
    images = [procedural(seed) for seed in range(80)] + renders(0, 24)
    train(net, images, arguments.steps)
    save(net, arguments.output)
    if arguments.output == NETWORK:
        report_gain()


if __name__ == "__main__":
    main()
