"""The catalogue of models: the form of an entry, the files that entries are read from, and the check of a model.

Merton's own entries are in config/catalogue: vlm.yaml, vla.yaml, of the meaning of policies' numbers convention.yaml,
of metrics of image quality iqa.yaml and of worlds world.yaml. A lab
writes its own into a file of the same form: ~/.config/merton/catalogue.yaml, catalogue.yaml in the current folder, or
files that MERTON_CATALOGUE names (several: separated as in PATH). Python modules beside such a file can be named as
adapters: its folder is searched after all others.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, cast

from pydantic import Field, create_model, field_validator, model_validator

from merton.config import Model, load, text_like
from merton.errors import (
    FileError,
    InfrastructureError,
    InputError,
    MertonError,
    MissingDependencyError,
    UnknownNameError,
    describe_error,
    missing,
    missing_library,
)
from merton.extras import absent
from merton.files import resource
from merton.models.base import Finding, ModelAdapter
from merton.models.checkpoints import locate
from merton.registry import Registry

VARIABLE = "MERTON_CATALOGUE"
LABS_FILE = Path("~/.config/merton/catalogue.yaml")
OWN_FILE = "catalogue.yaml"
"""The file in the current folder that is read by itself."""
KINDS = ("convention", "vlm", "vla", "iqa", "world")
"""The top-level keys of a file of the catalogue."""


class AdapterClass(Model):
    """The class of an adapter, "module:class", imported when a model is built; `extra` is the extra that it needs."""

    path: str
    extra: str = ""


class ImagePreparation(Model):
    """The preparation of an image for the model's weights.

    Attributes:
        size_px: (height, width) of the prepared image, or None if it depends on the image.
        resize: the resampling filter, which changes results under noise by a factor of two.
        by: the adapter, the checkpoint's own processor, or the server.
        crop: share of the area that a centre crop keeps before resizing, in (0, 1].
        jpeg: quality of the JPEG that it was in training, 1 to 95; 0 for none.
    """

    size_px: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)] | None = None
    resize: Literal["", "nearest", "bilinear", "bicubic", "lanczos"] = ""
    by: Literal["adapter", "processor", "server"] = "processor"
    crop: Annotated[float, Field(gt=0, le=1)] = 1.0
    jpeg: Annotated[int, Field(ge=0, le=95)] = 0


class NamedEntry(Model):
    """An entry of the catalogue; `name` is unique among those of its kind."""

    name: Annotated[
        str,
        text_like(
            r"^[a-z0-9][a-z0-9._-]{0,63}$",
            "lower-case letters, digits, '.', _ and -, beginning with a letter or digit, at most 64",
        ),
    ]


class AdapterEntry(NamedEntry):
    """An entry whose adapter is a class.

    Attributes:
        name: the name that agents, nodes and experiments use.
        description: one line for people.
        adapter: "module:class", or what a kind knows besides.
        settings: further arguments of that class, by name.
    """

    description: str
    adapter: str
    settings: dict[str, Any] = Field(default_factory=dict)

    def made(self, path: str, extra: str = "") -> Any:
        """The instance of the class: `from_entry(entry)` of it if there is one, else `class(**settings)`.

        Args:
            path: "module:class".
            extra: the extra that the class needs, or "".

        Raises:
            InputError: there is no such class, it cannot be imported, or it refuses the settings.
            MissingDependencyError: the class needs an extra or a package that is not installed; the text names it.
            InfrastructureError: the class fails otherwise: nothing has been asked of it yet.
        """
        module, _, attribute = path.partition(":")
        try:
            factory = getattr(_imported(self, module, extra), attribute, None)
            if not callable(factory):
                raise InputError(f"{self.name}: no class {attribute!r} in {module!r} for its adapter")
            return factory.from_entry(self) if hasattr(factory, "from_entry") else factory(**self.settings)
        except MertonError:
            raise
        except TypeError as error:
            raise InputError(f"{self.name}: {self.adapter} refuses its settings: {error}") from None
        except ImportError as error:
            raise MissingDependencyError(f"{self.name} needs a package that cannot be imported: {error}") from error
        except Exception as error:  # the code of a lab may raise anything
            raise InfrastructureError(f"{self.name} cannot be built: {describe_error(error)}") from error


class CatalogueEntry(AdapterEntry):
    """One model of the catalogue; each stage derives its own.

    Attributes:
        adapters: the stage's own adapters by name; its adapter is one of them, or "module:class".
        placeholder: the text that a prompt must contain exactly once, or "".
        paper: its name in the paper; "" for a model that is not the paper's.
        checkpoint: repository on the hub, address in a bucket, or a folder.
        revision: commit of the checkpoint.
        unpinned: why there is no revision.
        prompt: text given to the model, with {question} or {instruction}.
        licence: of the weights.
        source: address of the code or the model card.
        memory_gb: memory for weights and one inference [GB].
        remote_code: allow code that comes with the checkpoint to run; needs a revision.
        requests_per_minute: rate limit of `merton annotate` and `merton run --in-process`; 0 for no limit.
        cost_per_1000: price of a thousand requests in any currency, summed by `merton annotate`.
        verified: the parts that Merton's tests exercise.
        unverified: the parts that need its weights or its server.
    """

    adapters: ClassVar[Mapping[str, AdapterClass]] = {}
    placeholder: ClassVar[str] = ""

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

    @field_validator("prompt")
    @classmethod
    def _prompt_has_placeholder(cls, prompt: str) -> str:
        if cls.placeholder and prompt.count(cls.placeholder) != 1:
            raise ValueError(f"a prompt contains {cls.placeholder} exactly once")
        return prompt

    @model_validator(mode="after")
    def _is_pinned(self) -> CatalogueEntry:
        if self.remote_code and not self.revision:
            raise ValueError("remote_code runs code of the checkpoint, so it needs a pinned revision")
        if self.revision and self.unpinned:
            raise ValueError("a model has a revision or a reason why it is unpinned, not both")
        is_folder = self.checkpoint.startswith(("/", "~", "."))
        if self.checkpoint and not (self.revision or self.unpinned or is_folder):
            raise ValueError("name the revision of the checkpoint, or say under unpinned why there is none")
        return self

    @property
    def extra(self) -> str:
        """The extra (`merton.extras`) that its adapter needs; "" if it needs none, or is a class of one's own."""
        return self.adapters[self.adapter].extra if self.adapter in self.adapters else ""

    def build(self) -> ModelAdapter[Any, Any]:
        """The model, not loaded yet; see `made`. Raises InputError for an adapter that is none, too."""
        if self.adapter not in self.adapters and ":" not in self.adapter:
            raise InputError(
                f"{self.name}: {UnknownNameError('adapter', self.adapter, self.adapters)}, "
                "or name a class of your own as module:Class"
            )
        known = self.adapters.get(self.adapter) or AdapterClass(path=self.adapter)
        return cast(ModelAdapter[Any, Any], self.made(known.path, known.extra))


EntryType = TypeVar("EntryType", bound=NamedEntry)


def _imported(entry: AdapterEntry, module: str, extra: str) -> ModuleType:
    """The module of an adapter; raises as `AdapterEntry.made` does."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if extra:
            raise missing(error.name or module, extra, entry.name) from None
        if error.name and not f"{module}.".startswith(f"{error.name}."):
            raise MissingDependencyError(
                f"{entry.name} needs {error.name}, which its adapter {entry.adapter!r} imports and is not installed"
            ) from None
        raise InputError(
            f"{entry.name}: no module {module!r} for its adapter {entry.adapter!r}; a module of your own lies "
            "beside the catalogue file, or in a folder of PYTHONPATH"
        ) from None
    except Exception as error:  # the code of a lab may raise anything
        if isinstance(error, ImportError) and (library := missing_library(error)):
            raise library from error
        raise InputError(f"{entry.name}: {module!r} cannot be imported: {describe_error(error)}") from error


class Catalogue(Registry[EntryType], Generic[EntryType]):
    """A registry that reads its files on first use, so that a mistake in one does not prevent the import of Merton.

    Args:
        kind: one of `KINDS`.
        entry: the type of its entries. Entries of other kinds in the same files are left unchecked.
    """

    def __init__(self, kind: str, entry: type[EntryType]) -> None:
        super().__init__(kind)
        self._read = False
        self._files: dict[str, Path] = {}
        fields: dict[str, Any] = dict.fromkeys(KINDS, (tuple[Any, ...], ()))
        fields[kind] = (tuple[entry, ...], ())  # type: ignore[valid-type]
        self.file_model: type[Model] = create_model(
            "CatalogueFile", __base__=Model, __validators__={"unique": field_validator(kind)(_unique)}, **fields
        )

    def read(self) -> None:
        """Read the files of the catalogue; a later entry replaces an earlier one of the same name.

        Raises:
            InputError: a file is missing, or has a mistake; the text names the line.
        """
        entries: dict[str, EntryType] = {}
        files: dict[str, Path] = {}
        own, *others = catalogue_files(self.kind)
        for path in (own, *others):
            there = {entry.name: entry for entry in getattr(load(path, self.file_model), self.kind)}
            entries |= there
            files |= dict.fromkeys(there, path.absolute()) if path in others else {}
            if path in others and (folder := str(path.resolve().parent)) not in sys.path:
                sys.path.append(folder)  # last, so that no file there hides a module of the same name
        self._entries, self._files = {**entries, **self._entries}, files
        self._read = True

    def file_of(self, name: str) -> Path | None:
        """The lab's file that an entry is from, absolute; None of Merton's own, and of a name that is none."""
        self._read_once()
        return self._files.get(name)

    def _read_once(self) -> None:
        if not self._read:
            self.read()


def catalogue_files(kind: str) -> list[Path]:
    """The files of the catalogue, in reading order: Merton's own, the lab's, `OWN_FILE`, those of MERTON_CATALOGUE.

    Raises FileError if there is none of that name.
    """
    files = [resource("merton_bringup", f"config/catalogue/{kind}.yaml")]
    if (labs := LABS_FILE.expanduser()).exists():
        files.append(labs)
    if (here := Path(OWN_FILE)).is_file():
        files.append(here)
    named = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    for path in named:
        if not path.is_file():
            raise FileError(f"cannot read {path}, which {VARIABLE} names: there is no such file")
    return files + named


def _unique(entries: tuple[EntryType, ...]) -> tuple[EntryType, ...]:
    """The entries of a file; raises ValueError if two have one name."""
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is there twice")
    return entries


USABLE = "yes"
"""Word of `usable_here` for a model that lacks nothing."""


def usable_here(entry: CatalogueEntry) -> str:
    """The first thing that a model lacks on this machine, in a few words; `USABLE` if it lacks nothing.

    It builds the model and looks for its checkpoint on the disk; no server is asked and nothing is loaded. `examine`
    says more.
    """
    if entry.extra and absent(entry.extra):
        return f"needs extra {entry.extra}"
    try:
        entry.build()
    except MissingDependencyError:
        return "needs a package"
    except MertonError:
        return "no: see check"
    if entry.extra == "remote":
        return "needs server"
    if entry.extra and entry.checkpoint:
        try:
            locate(entry.checkpoint, entry.revision)
        except MertonError:
            return "needs weights"
    return USABLE


def examine(entry: CatalogueEntry) -> list[Finding]:
    """Build and check one model: its class, its requirements, its example. Problems become findings."""
    findings: list[Finding] = []
    try:
        model = entry.build()
        findings.append(Finding("adapter", True, entry.adapter))
        findings.extend(model.check())
    except MertonError as error:
        subject = "adapter" if not findings else "model"
        findings.append(Finding(subject, False, str(error)))
    except Exception as error:  # the code of a lab, or of a checkpoint, may raise anything
        findings.append(Finding("model", False, f"its code failed: {describe_error(error)}"))
    return findings
