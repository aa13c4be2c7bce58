"""A limited number of places, and the rule by which one gives way to a newcomer."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

Guest = TypeVar("Guest", bound=Hashable)


class Places(Generic[Guest]):
    """At most `most` guests: connections, or uploads. Thread-safe.

    A newcomer is never turned away because others were first: a place that is held costs an attacker nothing. When all
    places are taken, the origin that holds the most of them loses its oldest guest. So an address with many
    connections displaces its own, not those of others, and within one address the newest is served. Guests that have
    shown a token stay as long as there are others. Ours; the limits per address are those of nginx's `limit_conn`,
    with displacement instead of refusal.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._guests: dict[Guest, tuple[bool, str]] = {}
        self._groups: dict[bool, dict[str, dict[Guest, None]]] = {False: {}, True: {}}  # known: origin: oldest first

    def __len__(self) -> int:
        return len(self._guests)

    def all(self) -> list[Guest]:
        """The guests, oldest first."""
        with self._lock:
            return list(self._guests)

    def oldest(self) -> Guest | None:
        """The guest that entered first; None if there is none."""
        with self._lock:
            return next(iter(self._guests), None)

    def enter(self, guest: Guest, origin: str, known: bool = False) -> Guest | None:
        """Take a place.

        Args:
            guest: the newcomer.
            origin: the address that the guest comes from, or the owner of its token.
            known: whether the guest has shown a token.

        Returns:
            The guest that gives way; None if there was a free place. It is the newcomer itself if all others are known
            and the newcomer is not.
        """
        with self._lock:
            self._add(guest, origin, known)
            if len(self._guests) <= self._most:
                return None
            groups = self._groups[False] or self._groups[True]
            largest = max(groups.values(), key=len)
            gives_way = next(iter(largest))
            self._remove(gives_way)
            return gives_way

    def keep(self, guest: Guest) -> None:
        """The guest has shown a token since it entered."""
        with self._lock:
            if guest in self._guests:
                _, origin = self._guests[guest]
                self._remove(guest)
                self._add(guest, origin, True)

    def leave(self, guest: Guest) -> None:
        """Give up a place; a guest that has none changes nothing."""
        with self._lock:
            if guest in self._guests:
                self._remove(guest)

    def _add(self, guest: Guest, origin: str, known: bool) -> None:
        self._guests[guest] = (known, origin)
        self._groups[known].setdefault(origin, {})[guest] = None

    def _remove(self, guest: Guest) -> None:
        known, origin = self._guests.pop(guest)
        group = self._groups[known][origin]
        del group[guest]
        if not group:
            del self._groups[known][origin]
