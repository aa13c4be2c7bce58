"""A program that trains one network of pyiqa, or predicts with it; it runs in the environment where pyiqa is.

    python pyiqa_trainer.py

Merton starts it (`learned/elsewhere.py`) and nothing of Merton is imported. It needs pyiqa, its torch, and Pillow. The
first line of its input is a job, JSON; the end of its input ends it, so that it never outlives a killed parent. Each
line of its output is JSON: progress, then the reply or an error. pyiqa has a licence of its own, PolyForm
Noncommercial 1.0.0; Merton has none of it.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

CHECKPOINT, NETWORK = "checkpoint.pt", "network.npz"
"""Written after every epoch, and at the end: state, epoch and identity; the network's arrays by their names."""


class Refused(Exception):
    """A job that cannot be done, for a reason that its sender can mend."""


def main() -> int:
    """Do the job of the first line; the exit code is 1 after an error, which was told."""
    sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != Path(__file__).resolve().parent]
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # where pyiqa prints to

    def say(**content: Any) -> None:
        print(json.dumps(content), file=lines, flush=True)

    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        say(**{"about": about, "build": build, "train": train, "predict": predict}[job["do"]](job, say))
    except Refused as error:
        say(error=str(error), refused=True)
        return 1
    except Exception as error:
        say(error=f"{type(error).__name__}: {error}", refused=False)
        return 1
    return 0


def about(job: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Versions and device."""
    pyiqa, torch = _imported()
    return {"pyiqa": str(pyiqa.__version__), "torch": str(torch.__version__), "device": _device(torch)}


def build(job: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """The number of the network's parameters: that it can be built here, at random but for CLIP."""
    _imported()
    network, _ = built(job["network"], fresh=False)
    return {"parameters": sum(each.numel() for each in network.parameters())}


def train(job: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """Train from where the checkpoint in the folder ends; the same job gives the same bytes on one kind of device.

    Returns "start": the words about what the network began with, and "line": factor and offset from its outputs to the
    targets, which are 1 and 0 unless its loss leaves both open.
    """
    _, torch = _imported()
    folder, kept = Path(job["folder"]), Path(job["folder"]) / CHECKPOINT
    state = torch.load(kept, weights_only=True, map_location="cpu") if kept.exists() else None
    if state and state["identity"] != job["identity"]:
        raise Refused(f"{str(folder)!r} holds the training of other images, labels, seed, epochs or versions")
    torch.manual_seed(job["seed"])
    network, found = built(job["network"], fresh=state is None)
    device = _device(torch)
    network.to(device).train()
    learning = [each for each in network.parameters() if each.requires_grad]
    if not learning:
        raise Refused("no part of this network can be trained: all of it is frozen")
    optimizer = getattr(torch.optim, job["optimizer"])(learning, lr=job["rate"], weight_decay=job["decay"])
    start, first = _start(network, found), 0
    if state:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        start, first = state["start"], int(state["epoch"])
    losses = _losses(job["losses"])
    say(epoch=first, epochs=job["epochs"])
    for epoch in range(first, job["epochs"]):
        if job["cosine"]:
            for group in optimizer.param_groups:
                group["lr"] = job["rate"] * (1 + math.cos(math.pi * epoch / job["epochs"])) / 2
        for inputs, goals in _batches(job, epoch, device):
            outputs = network(*inputs).reshape(len(goals), 1)
            loss = sum(each(outputs, goals) for each in losses)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if not all(bool(torch.isfinite(each).all()) for each in learning):
            raise Refused(f"the training diverged in epoch {epoch + 1}: its weights are no finite numbers")
        content = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
        content |= {"epoch": epoch + 1, "identity": job["identity"], "start": start}
        with written_whole(kept) as file:
            torch.save(content, file)
        say(epoch=epoch + 1, epochs=job["epochs"])
    line = [1.0, 0.0] if any("MSE" in name for name in job["losses"]) else _line(job, network)
    with written_whole(folder / NETWORK) as file:
        np.savez(file, **{name: value.detach().cpu().numpy() for name, value in network.state_dict().items()})
    return {"start": start, "line": line}


def predict(job: dict[str, Any], say: Callable[..., None]) -> dict[str, Any]:
    """The network's output for each image, which it sees whole."""
    _, torch = _imported()
    network, _ = built(job["network"], fresh=False)
    with np.load(job["weights"]) as stored:
        network.load_state_dict({name: torch.from_numpy(stored[name]) for name in network.state_dict()})
    return {"values": _outputs(job, network)}


def built(options: dict[str, Any], fresh: bool) -> tuple[Any, list[tuple[str, bool]]]:
    """A network of pyiqa in its default form, and the weights that it asked for: name, and whether they were there.

    Args:
        options: "name" in pyiqa, and other options than its default ones.
        fresh: whether weights are wanted; else the state of a checkpoint takes their place, and only those that no
            state holds (CLIP's) are loaded.

    Raises:
        Refused: without weights that are absent here the network cannot be built, or would learn nothing.
    """
    from pyiqa.archs import build_network
    from pyiqa.default_model_configs import DEFAULT_CONFIGS

    others = {key: value for key, value in options.items() if key != "name"}
    if options["name"] not in DEFAULT_CONFIGS:
        raise Refused(f"this pyiqa has no network {options['name']!r}")
    found: list[tuple[str, bool]] = []
    _spare_absent_weights(found, fresh)
    wanted = {**DEFAULT_CONFIGS[options["name"]]["metric_opts"], **others}
    try:
        return build_network(wanted), found
    except OSError:  # AHIQ and QualiCLIP+ read files of their own
        found.append((f"{options['name']} (pyiqa)", False))
    try:
        return build_network({**wanted, "pretrained": False}), found
    except OSError as error:
        raise Refused(f"{options['name']} needs weights that are absent: {error}") from None


def _spare_absent_weights(found: list[tuple[str, bool]], fresh: bool) -> None:
    """From now on, weights that cannot be had leave a network at its random start; `found` gets all that it asks for.

    CLIP's are the exception: what is learned beside a CLIP with random weights is worth nothing, so that is refused.
    pyiqa imports the module of a network when it is built, and that module takes the functions as they are then.
    """
    import timm
    import torch.hub
    import torchvision.models
    from pyiqa.archs import arch_util, clip_model

    def attempted(name: str, load: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if not fresh:
            return otherwise()
        try:
            made = load()
        except Exception as error:  # each loader has exceptions of its own for a host that it cannot reach
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            found.append((name, False))
            return otherwise()
        found.append((name, True))
        return made

    def backbone(create: Callable[..., Any], origin: str, keyword: str, none: Any) -> Callable[..., Any]:
        def made(*names: str, **options: Any) -> Any:
            bare = partial(create, *names, **{**options, keyword: none})
            if not options.get(keyword):
                return bare()
            name = names[0] if names else create.__name__
            return attempted(f"{name} ({origin})", partial(create, *names, **options), bare)

        return made

    def load_whole(network: Any, path: Any, *others: Any, **named: Any) -> None:
        name = f"{Path(str(path)).stem} (pyiqa)"
        attempted(name, partial(whole, network, path, *others, **named), lambda: None)

    def load_arrays(address: str, **named: Any) -> Any:
        return attempted(Path(address).stem, partial(arrays, address, **named), dict)

    def load_clip(name: str, *others: Any, **named: Any) -> Any:
        try:
            made = clip(name, *others, **named)
        except OSError as error:
            raise Refused(
                f"the weights of CLIP {name}, without which nothing is learned, are absent: {error}"
            ) from None
        found.append((f"CLIP {name}", True))
        return made

    whole, arrays, clip = arch_util.load_pretrained_network, torch.hub.load_state_dict_from_url, clip_model.load
    for module, name, spared in (
        (arch_util, "load_pretrained_network", load_whole),
        (torch.hub, "load_state_dict_from_url", load_arrays),
        (clip_model, "load", load_clip),
    ):
        setattr(module, name, spared)
    timm.create_model = backbone(timm.create_model, "timm", "pretrained", False)
    for name in torchvision.models.list_models(module=torchvision.models):
        setattr(torchvision.models, name, backbone(getattr(torchvision.models, name), "torchvision", "weights", None))


def _start(network: Any, found: Sequence[tuple[str, bool]]) -> str:
    """Words about what a network began with, such as "random start; absent: resnet50 (timm)"."""
    there, absent = (list(dict.fromkeys(name for name, had in found if had is wanted)) for wanted in (True, False))
    words = [f"pretrained: {', '.join(there)}" if there else "random start"]
    words += [f"absent: {', '.join(absent)}"] if absent else []
    every, learning = (
        sum(each.numel() for each in network.parameters() if each.requires_grad or not only) for only in (False, True)
    )
    return "; ".join([*words, f"{_millions(learning)} of {_millions(every)} M parameters learn"])


def _millions(count: int) -> str:
    return f"{count / 1e6:.3g}"


def _batches(job: dict[str, Any], epoch: int, device: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Inputs (batch, 3, side, side) in 0..1 and targets (batch, 1), in the order, crops and mirrors of the epoch."""
    import torch

    rng = np.random.default_rng([job["seed"], epoch])
    torch.manual_seed(job["seed"] * 1_000_003 + epoch)
    np.random.seed((job["seed"] * 1_000_003 + epoch) % 2**32)  # noqa: NPY002  # pyiqa crops with it
    pairs, targets = job["pairs"], np.array(job["targets"], np.float32)
    side = max(job["least_px"], min([job["crop_px"], *(min(_size(pair[0])) for pair in pairs)]))
    for chosen in np.array_split(rng.permutation(len(pairs)), max(1, len(pairs) // job["batch"])):
        cuts = [_cut(_images(pairs[index], job), side, rng) for index in chosen]
        inputs = tuple(_tensor(each).to(device) for each in zip(*cuts, strict=True))
        yield inputs, torch.from_numpy(targets[chosen])[:, None].to(device)


def _cut(images: Sequence[Any], side: int, rng: np.random.Generator) -> list[Any]:
    """The same square of an image and its reference, mirrored as often as not."""
    height, width = images[0].shape[:2]
    top, left = rng.integers(height - side + 1), rng.integers(width - side + 1)
    step = 1 if rng.random() < 0.5 else -1
    return [image[top : top + side, left : left + side][:, ::step] for image in images]


def _line(job: dict[str, Any], network: Any) -> list[float]:
    """Factor and offset that give the outputs on the training images the mean and deviation of their targets."""
    outputs, targets = np.array(_outputs(job, network)), np.array(job["targets"])
    factor = float(targets.std() / max(outputs.std(), 1e-12))
    return [factor, float(targets.mean() - factor * outputs.mean())]


def _outputs(job: dict[str, Any], network: Any) -> list[float]:
    import torch

    device = _device(torch)
    network.to(device).eval()
    values = []
    with torch.no_grad():
        for pair in job["pairs"]:
            inputs = [_tensor([image]).to(device) for image in _images(pair, job)]
            torch.manual_seed(0)
            values.append(float(network(*inputs).flatten()[0]))
    return values


def _images(pair: Sequence[str], job: dict[str, Any]) -> list[Any]:
    """(height, width, 3) uint8 RGB of an image and, if there is one, its reference; enlarged to `least_px`."""
    from PIL import Image

    images = []
    for file in pair:
        try:
            with Image.open(file) as opened:
                image = opened.convert("RGB")
        except OSError as error:
            raise Refused(f"cannot read image {file!r}: {error}") from None
        if (factor := job["least_px"] / min(image.size)) > 1:
            image = image.resize([math.ceil(factor * side) for side in image.size], Image.Resampling.BICUBIC)
        images.append(np.asarray(image))
    if len({image.shape for image in images}) > 1:
        raise Refused(f"{pair[0]!r} and its reference {pair[1]!r} have different sizes")
    return images


def _size(file: str) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(file) as opened:
            return opened.size
    except OSError as error:
        raise Refused(f"cannot read image {file!r}: {error}") from None


def _tensor(images: Sequence[Any]) -> Any:
    import torch

    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float().div(255)


def _losses(weights: dict[str, float]) -> list[Any]:
    from pyiqa.losses import build_loss

    return [build_loss({"type": name, "loss_weight": weight}) for name, weight in weights.items()]


def _imported() -> tuple[Any, Any]:
    """pyiqa and torch, which works in one thread: with more, the last bits depend on their number."""
    try:
        import pyiqa
        import torch
    except ImportError as error:
        raise Refused(f"{error.name} is not installed in the environment of {sys.executable}") from None
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    return pyiqa, torch


def _device(torch: Any) -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def written_whole(path: Path) -> Iterator[Any]:
    """A file that is there whole or not at all, whenever the program is killed."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def _end_with_parent() -> None:
    while sys.stdin.readline():
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main())
