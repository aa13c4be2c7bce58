"""The identity of a model: everything that its answers may depend on, as part of the key of each answer."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from merton.cognition.models.base import MODELS, ModelEntry, VisionLanguageModel
from merton.decision.models.base import POLICIES, Policy, PolicyEntry
from merton.errors import InputError, MissingDependencyError, UnknownNameError
from merton.models.checkpoints import fingerprint_of, hash_of, locate

_TRANSPORT = ("patience", "parallel", "api_key_env", "deadline_s")
"""Settings that affect how a model is reached, not its answers."""


def entry_of(name: str) -> ModelEntry | PolicyEntry:
    """The catalogue's entry of a VLM or VLA; raises UnknownNameError for none, InputError for two."""
    if name in MODELS and name in POLICIES:
        raise InputError(f"the catalogue has both a VLM and a VLA called {name!r}; give one of them another name")
    if name in MODELS:
        return MODELS[name]
    if name in POLICIES:
        return POLICIES[name]
    raise UnknownNameError("model", name, [*MODELS, *POLICIES])


def refuse_unsuitable(entry: ModelEntry | PolicyEntry) -> None:
    """Raise InputError for a policy that needs more than a still image."""
    if isinstance(entry, PolicyEntry):
        wants = {"the simulator's state": entry.needs_scene, "depth": entry.needs_depth, "a trial": entry.stateful}
        for what, needed in wants.items():
            if needed:
                raise InputError(f"{entry.name} needs {what}, which an image of a dataset does not have")


def identity(entry: ModelEntry | PolicyEntry, model: VisionLanguageModel | Policy) -> dict[str, Any]:
    """The model's part of a key; JSON values.

    The checkpoint and its revision (the hash of its files, if it is a folder), the adapter and its version, prompt,
    preparation of images, and settings. The name counts only without a checkpoint, and the address of a server only
    without a revision.
    """
    settings = {key: value for key, value in entry.settings.items() if key not in _TRANSPORT}
    if entry.revision:
        settings.pop("url", None)
    values: dict[str, Any] = {
        "model": entry.checkpoint or entry.name,
        "revision": entry.revision or _weights(entry.checkpoint),
        "adapter": f"{type(model).__module__}:{type(model).__qualname__}",
        "adapter_version": model.adapter_version or _sources(type(model)),
        "prompt": entry.prompt,
        "image": entry.image.model_dump(mode="json"),
        "settings": settings,
    }
    if isinstance(entry, PolicyEntry):
        names = {"cameras", "convention", "unnorm_key", "state"}
        return {"kind": "vla", **values, **entry.model_dump(mode="json", include=names)}
    return {"kind": "vlm", **values, "max_tokens": entry.limit()}


def _weights(checkpoint: str) -> str:
    """The revision of a checkpoint on disk, or else a hash of its files; "" if it is not on disk."""
    if not checkpoint:
        return ""
    try:
        folder = locate(checkpoint)
    except MissingDependencyError:
        return ""
    return fingerprint_of(folder)


def _sources(kind: type) -> str:
    """A hash over the adapter's module, weights of the module's name beside it, and all of Merton that it imports.

    It is the version of an adapter that declares none: every change that could affect its answers counts.
    """
    here = Path(inspect.getfile(kind))
    files = {path for path in here.parent.glob(f"{here.stem}.*") if path.is_file()}
    files |= {path for path in (here.parent / here.stem).rglob("*") if path.is_file() and path.suffix != ".pyc"}
    waiting, seen = [here], {here}
    while waiting:
        file = waiting.pop()
        files.add(file)
        for name in _imports(file):
            spec = _spec(name)
            found = Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None
            if found and found not in seen:
                seen.add(found)
                waiting.append(found)
    return hash_of(files)


def _imports(file: Path) -> set[str]:
    """The modules of Merton that a file imports; "from a import b" gives a and a.b, which may be no module."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("merton.")}


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:  # a name in a module
        return None
