"""A named collection of entries that register themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from merton.errors import MertonError, UnknownNameError

Entry = TypeVar("Entry")
Function = TypeVar("Function", bound=Callable[..., object])


class Registry(Mapping[str, Entry], Generic[Entry]):
    """A mapping from name to entry, in the order of registration, that refuses duplicates.

    `kind` is the entries' noun in error texts, such as "distortion".
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}

    def add(self, name: str, entry: Entry) -> Entry:
        """Register `entry` under `name`; raises MertonError if the name is taken."""
        if name in self._entries:
            raise MertonError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = entry
        return entry

    def function(self, make: Callable[[str, str, Function], Entry]) -> Callable[[Function], Function]:
        """Decorator that registers a function under its own name.

        Args:
            make: the entry of a name, a description, which is the first line of the function's docstring, and the
                function.
        """

        def decorate(function: Function) -> Function:
            description = (function.__doc__ or "").strip().partition("\n")[0]
            self.add(function.__name__, make(function.__name__, description, function))
            return function

        return decorate

    def _read_once(self) -> None:
        """Called before every look; a registry whose entries are in files reads them at the first."""

    def _found(self, name: str) -> Entry | None:
        """The entry called `name`, listed or not; None if there is none."""
        self._read_once()
        return self._entries.get(name)

    def _known(self) -> Iterable[str]:
        """The names that `UnknownNameError` chooses from."""
        return self._entries

    def __getitem__(self, name: str) -> Entry:
        """The entry called `name`; raises UnknownNameError with the valid names."""
        if (entry := self._found(name)) is None:
            raise UnknownNameError(self.kind, name, self._known())
        return entry

    def __contains__(self, name: object) -> bool:
        # Mapping's own asks for the entry, and so words an error for each name that is not there
        return isinstance(name, str) and self._found(name) is not None

    def __iter__(self) -> Iterator[str]:
        self._read_once()
        return iter(self._entries)

    def __len__(self) -> int:
        self._read_once()
        return len(self._entries)
