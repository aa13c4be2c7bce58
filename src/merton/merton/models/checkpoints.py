"""Folders of checkpoints on this machine. Nothing is downloaded: a trial is no moment to fetch sixteen gigabytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from merton.errors import MertonError, MissingDependencyError, describe_error, require
from merton.files import file_sha256
from merton.models.base import Finding

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt", "*.ckpt", "*.msgpack")


def locate(checkpoint: str, revision: str = "") -> Path:
    """The folder of a checkpoint: itself if it is one, else its snapshot in the hub's cache.

    Args:
        checkpoint: a folder, or "owner/name" on the Hugging Face hub.
        revision: commit to use; "" is the cache's main. It is not checked for a folder.

    Raises:
        MissingDependencyError: it is missing, or huggingface_hub is not installed; the text says how to get it.
    """
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        return folder
    hub = require("huggingface_hub", "models", "a checkpoint of the Hugging Face hub")
    try:
        return Path(hub.snapshot_download(checkpoint, revision=revision or None, local_files_only=True))
    except (OSError, ValueError):  # not in the cache, or no name of a repository (the path of a missing folder)
        raise MissingDependencyError(
            f"{checkpoint} is not on this machine: {download(checkpoint, revision)}, or name its folder as checkpoint"
        ) from None


def download(checkpoint: str, revision: str = "") -> str:
    """The command, or the advice, to get a checkpoint or its missing files onto this machine."""
    if Path(checkpoint).expanduser().is_dir():
        return "copy the rest of it into that folder"
    return f"hf download {checkpoint}" + (f" --revision {revision}" if revision else "")


@contextmanager
def loading(name: str, folder: Path) -> Iterator[None]:
    """A context for loading weights, in which no error is an outcome of the model.

    Raises:
        MissingDependencyError: a torn file, too little memory, a class that does not fit; the text names it.
    """
    try:
        yield
    except MertonError:
        raise
    except Exception as error:
        raise MissingDependencyError(f"{name} cannot be loaded from {folder}: {describe_error(error)}") from error


def revision_of(folder: Path) -> str:
    """The commit of a snapshot in the hub's cache; "" for any other folder."""
    return folder.name if folder.parent.name == "snapshots" else ""


def fingerprint_of(folder: Path) -> str:
    """The commit of a snapshot in the hub's cache, or else `hash_of` all files of a folder."""
    return revision_of(folder) or hash_of((path for path in folder.rglob("*") if path.is_file()), folder)


def hash_of(files: Iterable[Path], root: Path | None = None) -> str:
    """A hash of 16 hexadecimal digits over contents and names, which are paths relative to `root` if there is one."""
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.relative_to(root) if root else file.name} {file_sha256(file)}\n".encode())
    return total.hexdigest()[:16]


def missing_weights(folder: Path) -> list[str]:
    """Files of weights that a checkpoint's index names but its folder lacks; ["the weights"] if it has none at all."""
    named: set[str] = set()
    for index in folder.glob("*.index.json"):
        named |= set(json.loads(index.read_text(encoding="utf-8")).get("weight_map", {}).values())
    if named:
        return sorted(name for name in named if not (folder / name).exists())
    return [] if any(next(folder.rglob(pattern), None) for pattern in _WEIGHTS) else ["the weights"]


def check_files(checkpoint: str, revision: str) -> list[Finding]:
    """Findings about the folder of a checkpoint and its weights; raises as `locate` does."""
    folder = locate(checkpoint, revision)
    findings = [Finding("checkpoint", True, f"{folder}")]
    if missing := missing_weights(folder):
        findings.append(Finding("weights", False, f"missing: {', '.join(missing)}", download(checkpoint, revision)))
    return findings
