"""The catalogue of worlds: `WORLDS`, from config/catalogue/world.yaml and a lab's own files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any, Self, cast

from pydantic import Field, model_validator

from merton.config import text_like
from merton.errors import InfrastructureError, InputError
from merton.files import file_sha256
from merton.models.catalogue import AdapterEntry, Catalogue
from merton.worlds.base import World
from merton.worlds.client import HostedWorld
from merton.worlds.description import WorldDescription
from merton.worlds.environments import Added, interpreter_in, read_added
from merton.worlds.hosted.world_wire import TOKEN
from merton.worlds.link import Address, Program

HOSTED = Path(__file__).with_name("hosted")
"""The folder of Merton's own adapters of worlds, files for the environments of simulators."""

_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)

Pinned = Annotated[
    str, text_like(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[^\s;]+$", "pinned, such as numpy==1.26.4")
]
HostAndPort = Annotated[str, text_like(r"^(\S+:[0-9]{1,5})?$", "host:port")]
PythonVersion = Annotated[str, text_like(r"^3\.[0-9]+$", "a version such as 3.11")]


class WorldEntry(AdapterEntry):
    """One world of the catalogue.

    It is hosted in exactly one way: in this process, in an environment that `merton world add` makes of
    `requirements`, in an environment that is there (`interpreter`), or elsewhere (`address`).

    Attributes:
        name: the name that experiments use.
        description: one line for people.
        adapter: "module:Class" of a `World` in this process; or "FILE.py:Class" for a process and an environment of its
            own, FILE beside a lab's catalogue file, or in merton/worlds/hosted; "" of one at an address.
        settings: arguments of that class, by name.
        requirements: packages of its environment, each as name==version.
        python: versions that its environment's interpreter may have, such as "3.11"; any if there are none.
        interpreter: path of the Python of an environment with its simulator, in place of requirements; from the folder
            of a lab's catalogue file.
        address: host:port of a world that `merton world serve` holds ready.
        deadline_s: the longest time that one request may take [s].
        licence: of the simulator.
        source: address of the simulator's code or package.
        paper: that describes it.
    """

    adapter: str = ""
    requirements: tuple[Pinned, ...] = ()
    python: tuple[PythonVersion, ...] = ()
    interpreter: str = ""
    address: HostAndPort = ""
    deadline_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    licence: str = ""
    source: str = ""
    paper: str = ""

    @model_validator(mode="after")
    def _is_hosted_in_one_way(self) -> Self:
        if self.address:
            self._refuse("a world at an address has its own", "adapter", "settings")
        elif not re.fullmatch(r"[^:]+:[A-Za-z_]\w*", self.adapter):
            raise ValueError(
                f"its adapter is FILE.py:Class or module:Class, unless it has an address, got {self.adapter!r}"
            )
        if self.address or not self.is_hosted:
            here = "module:Class is in this process, FILE.py:Class in an environment of its own"
            elsewhere = "a world at an address has its own"
            self._refuse(elsewhere if self.address else here, "requirements", "python", "interpreter")
        elif bool(self.requirements) == bool(self.interpreter):
            raise ValueError(
                "a world in a FILE.py has either requirements, to make an environment of, or the interpreter of one "
                "that is there"
            )
        elif self.python and self.interpreter:
            raise ValueError("python is for an environment that is made, and the interpreter has a version of its own")
        if self.is_hosted:
            self._travels()
        return self

    def _travels(self) -> None:
        """Settings go to another process as JSON, and a description is kept with them."""
        try:
            json.dumps(self.settings, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"its settings are JSON values, and {error}") from None

    def _refuse(self, why: str, *fields: str) -> None:
        if given := [field for field in fields if getattr(self, field)]:
            raise ValueError(f"{why}: leave {' and '.join(given)} out")

    @property
    def is_hosted(self) -> bool:
        """Whether it runs in another process than this, and so has to be added."""
        return bool(self.address) or self.adapter.rpartition(":")[0].endswith(".py")

    @property
    def adapter_file(self) -> Path:
        """The file of a hosted world's adapter; raises InputError if it is missing."""
        file = HOSTED / self.adapter.rpartition(":")[0]  # a lab's is absolute
        if not file.is_file():
            raise InputError(f"{self.name}: no file {str(file)!r} for its adapter")
        return file

    def of_file(self, file: Path) -> WorldEntry:
        """The same entry as of a lab's catalogue file, beside which its interpreter lies.

        Its adapter lies there, too, or is one of `HOSTED`.
        """
        found: dict[str, str] = {}
        if self.interpreter:
            found["interpreter"] = str(file.parent / Path(self.interpreter).expanduser())
        adapter, _, attribute = self.adapter.rpartition(":")
        place = file.parent / Path(adapter).expanduser()
        if adapter.endswith(".py") and (place.is_file() or not (HOSTED / adapter).is_file()):
            found["adapter"] = f"{place}:{attribute}"
        return self.model_copy(update=found)

    def origin(self) -> dict[str, Any]:
        """All that the environment and the description of a hosted world depend on, by its name in sentences.

        The adapter counts with the files beside it that it imports. Raises InputError if the adapter's file is missing.
        """
        if self.address:
            return {"address": self.address}
        return {
            "requirements": list(self.requirements),
            "interpreter": self.interpreter,
            "adapter": [self.adapter.rpartition(":")[2], *_hashes(self.adapter_file)],
            "settings": self.model_dump(mode="json")["settings"],
        }

    def build(self, expected: WorldDescription | None = None) -> World:
        """The world; a hosted one starts its process when it is first asked, and has to be added before.

        Args:
            expected: the description that it must have; None for the one that it was added with.

        Raises:
            InputError: it is not on this machine, has changed since, or its adapter is missing or refuses its settings.
            MissingDependencyError, InfrastructureError: as `AdapterEntry.made`, of a world in this process.
        """
        if not self.is_hosted:
            return cast(World, self.made(self.adapter))
        added = self.added()
        return self.hosted(added.environment, expected or added.description)

    def hosted(self, environment: str, expected: WorldDescription | None) -> HostedWorld:
        """A hosted world in an environment of its folder, "" if none was made.

        Args:
            environment: see `merton.worlds.environments.Added`.
            expected: the description that it must have; None for any.

        Raises:
            InfrastructureError: its interpreter is gone.
        """
        return HostedWorld(self.name, self.place(environment), expected, self.deadline_s)

    def program(self, environment: str) -> Program:
        """The process of a hosted world on this machine; raises as `hosted`."""
        python = Path(self.interpreter) if self.interpreter else interpreter_in(self.name, environment)
        if not python.exists():
            remedy = "correct its entry" if self.interpreter else f"`merton world add {self.name}`"
            raise InfrastructureError(f"the interpreter of the world {self.name!r} is gone, {python}: {remedy}")
        return Program(python, f"{self.adapter_file}:{self.adapter.rpartition(':')[2]}", self.settings)

    def place(self, environment: str) -> Program | Address:
        """The place of a hosted world: as `program`, or its address with the token of this process (`TOKEN`)."""
        if not self.address:
            return self.program(environment)
        host, _, port = self.address.rpartition(":")
        return Address(host.strip("[]"), int(port), os.environ.get(TOKEN, ""))

    def described(self) -> WorldDescription:
        """The description of a hosted world as it was when it was added; no process is started.

        Raises:
            InputError: it is not on this machine, or its entry has changed since it was added.
        """
        return cast(WorldDescription, self.added().description)

    def added(self) -> Added:
        """The hosted world as it was added, with a description; raises as `described`."""
        if not self.is_hosted:
            raise InputError(f"the world {self.name!r} is in this process: nothing of it is kept")
        added = read_added(self.name)
        if added is None or added.description is None:
            raise InputError(f"the world {self.name!r} is not on this machine: `merton world add {self.name}`")
        origin = self.origin()
        if changed := [name for name in {**added.origin, **origin} if added.origin.get(name) != origin.get(name)]:
            raise InputError(
                f"the world {self.name!r} is another one than when it was added, by its {' and '.join(changed)}: "
                f"`merton world add {self.name}` again"
            )
        return added


def _hashes(adapter: Path) -> list[str]:
    """File and hash of an adapter and of the files beside it that it imports, sorted."""
    found: dict[str, str] = {}
    waiting = [adapter]
    while waiting:
        file = waiting.pop()
        if file.name in found or not file.is_file():
            continue
        found[file.name] = f"{file.name} {file_sha256(file)}"
        waiting += [file.with_name(f"{name}.py") for name in _IMPORTED.findall(file.read_text("utf-8", "replace"))]
    return sorted(found.values())


class Worlds(Catalogue[WorldEntry]):
    """The worlds of the catalogue; those of a lab's file find their adapters beside it."""

    def __init__(self) -> None:
        super().__init__("world", WorldEntry)

    def read(self) -> None:
        """See `Catalogue.read`."""
        super().read()
        for name, file in self._files.items():
            self._entries[name] = self._entries[name].of_file(file)


WORLDS = Worlds()
