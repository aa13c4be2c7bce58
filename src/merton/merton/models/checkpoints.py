"""Where a checkpoint lies on this machine. Nothing is downloaded: a trial is no moment to fetch sixteen gigabytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from merton.errors import MertonError, MissingDependencyError, require
from merton.models.catalogue import in_a_sentence

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.ckpt", "*.msgpack")


def locate(checkpoint: str, revision: str = "") -> Path:
    """The folder of a checkpoint: itself if it is one, else its snapshot in the hub's cache.

    Args:
        checkpoint: a folder, or "owner/name" on the Hugging Face hub.
        revision: commit to use; "" is whatever the cache calls main. Of a folder it is not checked.

    Raises:
        MissingDependencyError: it is not there, or huggingface_hub is not installed; the text says how to get it.
    """
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        return folder
    hub = require("huggingface_hub", "models", "a checkpoint of the Hugging Face hub")
    try:
        return Path(hub.snapshot_download(checkpoint, revision=revision or None, local_files_only=True))
    except (OSError, ValueError):  # not in the cache; or no name of a repository, such as a folder that is not there
        raise MissingDependencyError(
            f"{checkpoint} is not on this machine: {download(checkpoint, revision)}, or name its folder as checkpoint"
        ) from None


def download(checkpoint: str, revision: str = "") -> str:
    """What brings a checkpoint, or the rest of it, onto this machine."""
    if Path(checkpoint).expanduser().is_dir():
        return "copy the rest of it into that folder"
    return f"hf download {checkpoint}" + (f" --revision {revision}" if revision else "")


@contextmanager
def loading(name: str, folder: Path) -> Iterator[None]:
    """Around the loading of weights: whatever goes wrong there, the model was not asked yet, and so did not fail.

    Raises:
        MissingDependencyError: a torn file, too little memory, a class that does not fit; the text says which.
    """
    try:
        yield
    except MertonError:
        raise
    except Exception as error:
        raise MissingDependencyError(f"{name} cannot be loaded from {folder}: {in_a_sentence(error)}") from error


def revision_of(folder: Path) -> str:
    """The commit of a snapshot in the hub's cache; "" for any other folder."""
    return folder.name if folder.parent.name == "snapshots" else ""


def missing_weights(folder: Path) -> list[str]:
    """Files of weights that a checkpoint names but does not have; a word for them all if it has none and names none."""
    named: set[str] = set()
    for index in folder.glob("*.index.json"):
        named |= set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
    if named:
        return sorted(name for name in named if not (folder / name).exists())
    return [] if any(next(folder.rglob(pattern), None) for pattern in _WEIGHTS) else ["the weights"]
