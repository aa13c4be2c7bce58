"""Train a learned policy by behaviour cloning: python tools/train/train_vla.py MEMBER FOLDER [--scenes N] [--steps N].

Needs torch. FOLDER takes the scenes of the split `train` (`split_samples.py`), which all members share, the member's
distorted images and the state of its training, so that all go on after an interruption; delete the member's files there
when its configuration changes. The weights go into the package. The same member, scenes and steps give the same weights
on the same machine with one thread (OMP_NUM_THREADS=1).
`vla_success.py` then measures the member in closed loop.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import hover_samples
import numpy as np
import torch
from numpy.typing import NDArray
from split_samples import TASKS_PER_SCENE, SplitSamples, load
from torch import Tensor, nn
from training_loop import Light, Loss, relit, save, train
from vla_networks import GistNetwork, GlanceNetwork

from merton.decision.models import picture_view, table_view
from merton.decision.models.glance import COLUMNS, FOLDER, ROLES, ROWS, STRIDE, hand_state
from merton.decision.models.segments import SEGMENT_SIZE, SEGMENTS, from_deltas, tokens
from merton.execution.kinematics import base_from_tcp
from merton.perception.distortion import distort
from merton.seeding import generator
from merton.world.cell import load_cell
from merton.world.observation import CameraView, Image

SCENES_PER_BATCH = 12
LIGHT = Light(gain=0.4, tint=0.16, offset=0.08)
HARDENED_AGAINST = (
    "gaussian_blur", "motion_blur", "color_shift", "hsv_saturation", "webp", "color_noise", "multiplicative_noise",
    "max_darken", "mean_darken", "block_exchange", "resolution_limit", "sharpness_change",
)  # fmt: skip
"""Twelve types of distortion that are quick to compute; the others show how far the training carries."""

VIEWS: dict[str, Callable[[CameraView], Image]] = {
    "table": table_view.from_above,
    "levelled picture": picture_view.from_picture,
    "picture": picture_view.part,
}
"""Images that members see: the table from above, or a part of the picture, with its light levelled or as it is."""

AnyNetwork = GlanceNetwork | GistNetwork


@dataclass(frozen=True)
class Member:
    """The part of the training in which a member differs from the others.

    Attributes:
        seed: of the first weights and of the batches.
        cameras: the views that it uses.
        light: whether light, colour and contrast of the images vary.
        view: what it sees, of `VIEWS`. From a "picture" it regresses its motion by pooled features (`gist`); from the
            others it finds places (`glance`).
        distortions: types of distortion, of which one at a random level is in two of three images.
        second: the camera of a second look, from where the first movement ends; "" for a member that looks once.
        begins_as: the member whose weights are its first ones, with zeros for the inputs that only it has; "" for
            random weights.
        steps: of the training.
    """

    seed: int
    cameras: tuple[str, ...] = ("top",)
    light: bool = True
    view: Literal["table", "levelled picture", "picture"] = "table"
    distortions: tuple[str, ...] = ()
    second: str = ""
    begins_as: str = ""
    steps: int = 2400


@dataclass(frozen=True)
class Look:
    """The scenes as they are at one moment of the tasks.

    Attributes:
        images: (copies, n, 3 cameras, rows, columns) uint8: the tables from above, as they are and distorted.
        tasks: inputs and targets of the m tasks in each, (n, m, ...): words, segments, places, pixels, hands.
    """

    images: Tensor
    tasks: dict[str, Tensor]


MEMBERS = {
    "glance": Member(seed=1),
    "glance-plain": Member(seed=2, light=False),
    "glance-hardened": Member(seed=3, distortions=HARDENED_AGAINST, steps=3600),
    "glance-pair": Member(seed=4, cameras=("top", "side")),
    "glance-uncalibrated": Member(seed=6, light=False, view="levelled picture"),
    "glance-twice": Member(seed=5, second="wrist", begins_as="glance", steps=2000),
    "gist": Member(seed=7, light=False, view="picture", steps=3600),
}


def tables(samples: SplitSamples, camera: str, member: Member, copy: int) -> NDArray[np.uint8]:
    """The table of each scene (n, 3, rows, columns); copies from 1 on are distorted."""
    seen = []
    for seed, image in zip(samples.seeds, samples.images(camera), strict=True):
        if copy:
            rng = generator("hardened", samples.split, seed, camera, copy)
            name, level = str(rng.choice(list(member.distortions))), int(rng.integers(1, 6))
            image = distort(image, name, level, rng)
        view = CameraView(camera, image, None, samples.intrinsics, samples.base_from_camera[camera])
        seen.append(VIEWS[member.view](view).transpose(2, 0, 1))
    return np.stack(seen)


def images_of(samples: SplitSamples, member: Member) -> Tensor:
    """(copies, n, 3 cameras, rows, columns) uint8: the tables as they are, and two distorted copies if it has any."""
    copies = range(3 if member.distortions else 1)
    seen = [
        np.concatenate([tables(samples, camera, member, copy) for camera in member.cameras], axis=1) for copy in copies
    ]
    if member.second:  # the second camera sees nothing yet
        seen = [np.concatenate([tables, np.zeros_like(tables)], axis=1) for tables in seen]
    return torch.from_numpy(np.stack(seen))


def kept(file: Path, draw: Callable[[], Tensor]) -> Tensor:
    """The images that `draw` gives, from `file` if it is there; distorting takes minutes."""
    if not file.exists():
        temporary = file.with_suffix(".part.npy")
        np.save(temporary, draw().numpy())
        temporary.rename(file)
    return torch.from_numpy(np.load(file))


def looks(folder: Path, samples: SplitSamples, member: Member, words: tuple[str, ...]) -> list[Look]:
    """The moments of the tasks at which a member looks."""
    cell = load_cell()
    home = base_from_tcp(cell.home_joints, cell)
    count = len(samples.instructions)
    if member.distortions:
        file = folder / f"tables_{samples.split}_{len(samples.seeds)}_{member.seed}.npy"
        images = kept(file, lambda: images_of(samples, member))
    else:
        images = images_of(samples, member)
    homes = np.tile(home, (count, 1, 1))
    first = Look(images, prepared(samples, member, words, samples.deltas, homes, np.ones(count)))
    if not member.second:
        return [first]
    hover = hover_samples.load(folder / "hover", samples.split, samples.seeds)
    images = np.concatenate([hover.images(camera) for camera in (*member.cameras, member.second)], axis=1)
    tasks = prepared(samples, member, words, hover.deltas, hover.poses, hover.gripper_open)
    alone = {name: values.flatten(0, 1)[:, None] for name, values in tasks.items()}
    return [first, Look(torch.from_numpy(images)[None], alone)]


def in_picture(samples: SplitSamples) -> NDArray[np.float64]:
    """Places [m] of the pixels of the tasks' things in the picture from above, (5 n, points, 2).

    A label: the policy itself is not told where the camera stands.
    """
    camera_from_base = np.linalg.inv(samples.base_from_camera["top"])
    height = np.full((*samples.keypoints.shape[:2], 1), table_view.HEIGHT_M)
    things = np.concatenate([samples.keypoints, height], -1) @ camera_from_base[:3, :3].T + camera_from_base[:3, 3]
    image_px = np.apply_along_axis(samples.intrinsics.project, -1, things)
    return table_view.places(picture_view.pixels(samples.intrinsics, image_px))


def prepared(
    samples: SplitSamples,
    member: Member,
    words: tuple[str, ...],
    chunks: Sequence[NDArray[np.float64]],
    poses: NDArray[np.float64],
    gripper_open: NDArray[np.float64],
) -> dict[str, Tensor]:
    """Inputs and targets of the tasks of n scenes: (n, 5, ...), with chunks, poses of the hand and grippers of all."""
    on_grid = samples.keypoints if member.view == "table" else in_picture(samples)
    places = samples.keypoints if member.view == "picture" else on_grid
    segments = np.zeros((len(chunks), SEGMENTS, SEGMENT_SIZE))
    for index, deltas in enumerate(chunks):
        found = from_deltas(deltas, poses[index, :3, 3])
        if len(found) > SEGMENTS:
            raise SystemExit(f"{samples.instructions[index]!r} takes {len(found)} segments, more than {SEGMENTS}")
        segments[index, : len(found)] = found
    rows = {
        "words": torch.from_numpy(np.stack([tokens(text, words) for text in samples.instructions])),
        "segments": torch.from_numpy(segments).float(),
        "hands": torch.from_numpy(np.stack([hand_state(*hand) for hand in zip(poses, gripper_open, strict=True)])),
        "places": torch.from_numpy(places).float(),
        "pixels": torch.from_numpy((table_view.pixels(on_grid) - 0.5 * (STRIDE - 1)) / STRIDE).float(),
    }
    return {name: values.unflatten(0, (-1, TASKS_PER_SCENE)) for name, values in rows.items()}


def losses(segments: Tensor, places: Tensor, logits: Tensor, truth: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Errors of the motion and of the places, in centimetres, and the cross entropy of the attention."""
    wanted, present = truth["segments"], truth["segments"][..., 8]
    scale = torch.tensor([0.01, 0.01, 0.01, 0.1, 0.1, 0.1, 0.1, 0.3])
    error = nn.functional.smooth_l1_loss(segments[..., :8] / scale, wanted[..., :8] / scale, reduction="none").mean(-1)
    motion = (error * present).sum() / present.sum()
    motion = motion + 2 * nn.functional.binary_cross_entropy_with_logits(segments[..., 8], present)
    known = ~truth["pixels"].isnan().any(-1)
    distance = nn.functional.smooth_l1_loss(places / 0.01, truth["places"].nan_to_num() / 0.01, reduction="none")
    wanted_pixels = truth["pixels"][known]
    rows, columns = torch.meshgrid(torch.arange(ROWS), torch.arange(COLUMNS), indexing="ij")
    grid = torch.stack([columns.flatten(), rows.flatten()], -1).float()
    near = (-((grid - wanted_pixels[:, None]) ** 2).sum(-1) / (2 * 0.8**2)).softmax(-1)
    elsewhere = -(near * logits[known].log_softmax(-1)).sum(-1)
    return motion, (distance.mean(-1) * known).sum() / known.sum(), elsewhere.mean()


def loss_of_steps(network: AnyNetwork, member: Member, views: Sequence[Look]) -> Callable[[int], Loss]:
    """The loss of a step, each of which takes scenes of the next look."""

    def loss_of(step: int) -> Loss:
        rng = torch.Generator().manual_seed(1_000_003 * member.seed + step)
        look = views[step % len(views)]
        count = SCENES_PER_BATCH * (2 if look.tasks["words"].shape[1] == 1 else 1)
        scenes = torch.randint(look.images.shape[1], (count,), generator=rng)
        copies = torch.randint(look.images.shape[0], (count,), generator=rng)
        batch = look.images[copies, scenes].float().contiguous(memory_format=torch.channels_last) / 255
        chosen = {name: values[scenes] for name, values in look.tasks.items()}
        found = network(relit(batch, rng, LIGHT) if member.light else batch, chosen["words"], chosen["hands"])
        parts = losses(*found, {name: values.flatten(0, 1) for name, values in chosen.items()})
        return parts[0] + 0.3 * parts[1] + parts[2], parts

    return loss_of


def found_share(network: AnyNetwork, look: Look) -> list[float]:
    """Share of tasks of each difficulty in which everything that is named is found within 2 cm."""
    with torch.no_grad():
        places = network(look.images[0].float() / 255, look.tasks["words"], look.tasks["hands"])[1]
    wanted = look.tasks["places"].reshape(-1, TASKS_PER_SCENE, ROLES, 2)
    away = (places.reshape(wanted.shape) - wanted)[..., :2, :].norm(dim=-1).nan_to_num()
    return [float(share) for share in (away < 0.02).all(-1).float().mean(0)]


def vocabulary(samples: SplitSamples, member: Member) -> tuple[str, ...]:
    """The words that a member knows: those of its scenes, or of the member as which it begins."""
    if member.begins_as:
        with np.load(FOLDER / f"{member.begins_as}.npz") as stored:
            return tuple(str(word) for word in stored["words"])
    return tuple(sorted({word for text in samples.instructions for word in text.split()}))


def new_network(words: tuple[str, ...], segments: Tensor, member: Member) -> AnyNetwork:
    """Before its training: random weights scaled to the motions of the data, or those of another member."""
    torch.manual_seed(member.seed)
    used = segments[segments[..., 8] > 0]
    mean, spread = used.mean(0), used.std(0).clamp(min=0.05)
    mean[8], spread[8] = 0.0, 1.0
    cameras = len(member.cameras) + bool(member.second)
    if member.view == "picture":
        return GistNetwork(len(words), mean, spread).to(memory_format=torch.channels_last)
    network = GlanceNetwork(len(words), cameras, mean, spread, knows_hand=bool(member.second))
    if member.begins_as:
        with np.load(FOLDER / f"{member.begins_as}.npz") as stored, torch.no_grad():
            for name, values in network.state_dict().items():
                known = torch.from_numpy(stored[name].astype(np.float32))
                values.zero_()[tuple(map(slice, known.shape))] = known
    return network.to(memory_format=torch.channels_last)


def main() -> None:
    """Draw scenes, train, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("member", choices=MEMBERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", type=int, default=1700)
    parser.add_argument("--steps", type=int, help="of the training; by default the member's")
    parser.add_argument("--output", type=Path, help="file of the weights; by default that of the package")
    arguments = parser.parse_args()
    member, folder = MEMBERS[arguments.member], arguments.folder
    steps = arguments.steps or member.steps
    samples = load(folder / "samples", "train", range(arguments.scenes))
    chosen_on = load(folder / "samples", "val", range(50))
    words = vocabulary(samples, member)
    views, val = looks(folder, samples, member, words), looks(folder, chosen_on, replace(member, distortions=()), words)
    network = new_network(words, views[0].tasks["segments"], member)
    state_file = folder / f"{arguments.member}_{arguments.scenes}_{steps}.pt"
    started = time.process_time()
    for step, parts in train(network, steps, state_file, loss_of_steps(network, member, views)):
        if step % 100 == 0:
            motion, places, attention = parts
            line = f"step {step}: motion {motion:.3f}, places {places:.3f} cm, attention {attention:.2f}"
            if step % 500 == 0:
                for look in val:
                    line += f"; found {' '.join(f'{share:.2f}' for share in found_share(network, look))}"
            print(f"{line}; {time.process_time() - started:.0f} s", flush=True)
    output = arguments.output or FOLDER / f"{arguments.member}.npz"
    output.parent.mkdir(parents=True, exist_ok=True)
    save(network, words, output)
    print(f"{output}: {output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
