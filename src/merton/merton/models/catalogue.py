"""The catalogue of models: what an entry says, where entries are read from, and what is found when one is checked.

Merton's own entries are in config/catalogue/vlm.yaml and vla.yaml. A lab writes its own into a file of the same form
and names it in MERTON_CATALOGUE (several: separated as in PATH), or keeps it in ~/.config/merton/catalogue.yaml.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, model_validator

from merton.config import Model, load
from merton.errors import InputError, MertonError, MissingDependencyError, missing
from merton.files import resource
from merton.registry import Registry

VARIABLE = "MERTON_CATALOGUE"
LABS_FILE = Path("~/.config/merton/catalogue.yaml")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at when an entry was checked: whether it is fine, what was seen, how to mend it."""

    subject: str
    fine: bool
    seen: str
    remedy: str = ""


class Adapter(Model):
    """A class that plays models of one kind.

    Attributes:
        path: "module:class"; imported when a model is built.
        extra: the extra of Merton to install for it, or "" if it needs none.
    """

    path: str
    extra: str = ""


class ImagePreparation(Model):
    """What happens to an image before the model's weights see it.

    Attributes:
        size_px: (height, width) it ends up as, or None where the size follows from the image.
        resize: the resampling filter; it changes results under noise by a factor of two, so it is stated.
        by: who does it: the adapter, the checkpoint's own processor, or the server.
        crop: share of the area that a centre crop keeps before resizing, in (0, 1].
    """

    size_px: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)] | None = None
    resize: Literal["", "nearest", "bilinear", "bicubic", "lanczos"] = ""
    by: Literal["adapter", "processor", "server"] = "processor"
    crop: Annotated[float, Field(gt=0, le=1)] = 1.0


class Entry(Model):
    """What the catalogue says of one model.

    Attributes:
        name: what it is asked for by.
        description: one line for people.
        adapter: the class that plays it: a name of the stage's `ADAPTERS`, or "module:class" of your own.
        settings: further arguments of that class, by name.
        paper: what the paper calls it; "" for a model that is not the paper's.
        checkpoint: repository on the hub, address in a bucket, or a folder.
        revision: commit of the checkpoint.
        unpinned: why there is no revision.
        prompt: text the model is given, with {question} or {instruction}.
        image: how images are prepared.
        licence: of the weights.
        source: address of the code or the model card.
        memory_gb: memory for weights and one inference [GB].
        remote_code: the checkpoint brings code of its own, and this entry agrees to run it; needs a revision.
        requests_per_minute: most it may be asked by `merton annotate`; 0 for no limit.
        cost_per_1000: what a thousand requests cost, in whatever currency; for `merton annotate` to add up.
        verified: what Merton's tests exercise of it.
        unverified: what only its weights or its server can show.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    description: str
    adapter: str
    settings: dict[str, Any] = Field(default_factory=dict)
    paper: str = ""
    checkpoint: str = ""
    revision: str = ""
    unpinned: str = ""
    prompt: str = ""
    image: ImagePreparation = ImagePreparation()
    licence: str = ""
    source: str = ""
    memory_gb: Annotated[float, Field(ge=0)] = 0.0
    remote_code: bool = False
    requests_per_minute: Annotated[float, Field(ge=0)] = 0.0
    cost_per_1000: Annotated[float, Field(ge=0)] = 0.0
    verified: str = ""
    unverified: str = ""

    @model_validator(mode="after")
    def _pinned(self) -> Entry:
        if self.remote_code and not self.revision:
            raise ValueError("remote_code runs code of the checkpoint, so it needs a pinned revision")
        if self.revision and self.unpinned:
            raise ValueError("a model has a revision or a reason why it is unpinned, not both")
        is_folder = self.checkpoint.startswith(("/", "~", "."))
        if self.checkpoint and not (self.revision or self.unpinned or is_folder):
            raise ValueError("name the revision of the checkpoint, or say under unpinned why there is none")
        return self


EntryType = TypeVar("EntryType", bound=Entry)


def make(entry: Entry, adapters: Mapping[str, Adapter]) -> Any:
    """The model of an entry, not loaded yet: `from_entry(entry)` of its class if it has that, else `class(**settings)`.

    Raises:
        InputError: there is no such adapter or class, it cannot be imported, or it refuses the settings.
        MissingDependencyError: the class needs an extra or a package that is not installed; the text names it.
    """
    if entry.adapter not in adapters and ":" not in entry.adapter:
        raise InputError(
            f"{entry.name}: unknown adapter {entry.adapter!r}; choose one of: {', '.join(sorted(adapters))}, "
            "or name a class of your own as module:Class"
        )
    known = adapters.get(entry.adapter) or Adapter(path=entry.adapter)
    module, _, attribute = known.path.partition(":")
    try:
        factory = getattr(_imported(entry, module, known.extra), attribute, None)
        if not callable(factory):
            raise InputError(f"{entry.name}: no class {attribute!r} in {module!r} for its adapter")
        return factory.from_entry(entry) if hasattr(factory, "from_entry") else factory(**entry.settings)
    except TypeError as error:
        raise InputError(f"{entry.name}: {entry.adapter} refuses its settings: {error}") from None


def _imported(entry: Entry, module: str, extra: str) -> ModuleType:
    """The module of an adapter; raises as `make` does. What a lab's own file lacks or gets wrong is told as such."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if extra:
            raise missing(error.name or module, extra, entry.name) from None
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise MissingDependencyError(
                f"{entry.name} needs {error.name}, which its adapter {entry.adapter!r} imports and is not installed"
            ) from None
        raise InputError(f"{entry.name}: no module {module!r} for its adapter {entry.adapter!r}") from None
    except Exception as error:  # the code of a lab may raise anything
        raise InputError(f"{entry.name}: {module!r} cannot be imported: {in_a_sentence(error)}") from error


def in_a_sentence(error: Exception) -> str:
    """What was raised by code that is not Merton's, and where: kind, text, file and line."""
    frames = traceback.extract_tb(error.__traceback__)
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if not frames or isinstance(error, SyntaxError):  # whose text says where
        return text
    return f"{text} ({frames[-1].filename}, line {frames[-1].lineno})"


class Catalogue(Registry[EntryType], Generic[EntryType]):
    """A registry that reads its files when it is first asked, so that a fault in one is told as any other mistake.

    Args:
        kind: "vlm" or "vla": the key of the files that its entries stand under.
        form: what a file must look like; a stage checks its own entries and leaves the other's alone.
    """

    def __init__(self, kind: str, form: type[Model]) -> None:
        super().__init__(kind)
        self._form = form
        self._read = False

    def read(self) -> None:
        """Read the files of the catalogue; a later entry replaces an earlier one of the same name.

        Raises:
            InputError: a file that is named but not there, or that says something wrong; with its line.
        """
        entries: dict[str, EntryType] = {}
        for path in catalogue_files(self.kind):
            entries |= {entry.name: entry for entry in getattr(load(path, self._form), self.kind)}
        self._entries = {**entries, **self._entries}
        self._read = True

    def __getitem__(self, name: str) -> EntryType:
        """The entry called `name`; raises UnknownNameError with the valid names."""
        if not self._read:
            self.read()
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        if not self._read:
            self.read()
        return super().__iter__()

    def __len__(self) -> int:
        if not self._read:
            self.read()
        return super().__len__()


def catalogue_files(kind: str) -> list[Path]:
    """Where entries of a stage are read from, in order: Merton's own, the lab's, and those of MERTON_CATALOGUE."""
    files = [resource("merton_bringup", f"config/catalogue/{kind}.yaml")]
    if (labs := LABS_FILE.expanduser()).exists():
        files.append(labs)
    return files + [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


def unique(entries: tuple[EntryType, ...]) -> tuple[EntryType, ...]:
    """The entries of a file; raises ValueError if two have one name."""
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is there twice")
    return entries


def examine(entry: Entry, build: Callable[[], Any]) -> list[Finding]:
    """Check one model: its class, what it needs, its example. What is missing is a finding, never an error.

    Args:
        entry: of the catalogue.
        build: makes the model; its `check()` yields findings.
    """
    findings: list[Finding] = []
    try:
        model = build()
        findings.append(Finding("adapter", True, entry.adapter))
        findings.extend(model.check())
    except MertonError as error:
        subject = "adapter" if not findings else "model"
        findings.append(Finding(subject, False, str(error)))
    except Exception as error:  # the code of a lab, or of a checkpoint, may raise anything
        findings.append(Finding("model", False, f"its code failed: {in_a_sentence(error)}"))
    return findings
