"""The harnesses that are connected, by the names of their sessions."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from merton.errors import InputError
from merton.proxy.given import Given
from merton.proxy.stream import LEFT, Keeper, Stream


class Sessions:
    """Streams of episodes by the name of their session; "" unless an address says one.

    Args:
        keeper: of the run.
        agent: the policy's name, unless an address says another.
    """

    def __init__(self, keeper: Keeper, agent: str) -> None:
        self._keeper, self._agent = keeper, agent
        self._streams: dict[str, list[Stream]] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def opened(self, said: dict[str, str]) -> Stream:
        """The stream of a new websocket; raises InputError for an address that says what cannot be."""
        given = Given(self._agent).taking(said)
        streams = self._streams.setdefault(given.session, [])
        stream = next((one for one in streams if not one.connections or one.left), None)
        if stream is None:
            stream = Stream(self._keeper, given)
            streams.append(stream)
        else:
            stream.given = given
            if not stream.called:
                stream.say(given)
        stream.connections, stream.left = stream.connections + 1, False
        return stream

    def at(self, said: dict[str, str]) -> Stream:
        """The stream of a request; an address that says something else than the last one's begins an episode."""
        given = Given(self._agent).taking(said)
        streams = self._streams.setdefault(given.session, [])
        if not streams:
            streams.append(Stream(self._keeper, given))
        elif streams[0].given != given:
            streams[0].given = given
            if not streams[0].called:
                streams[0].say(given)
        return streams[0]

    def turn(self, said: Mapping[str, str]) -> asyncio.Lock:
        """Held by a request of a session until it is answered: an episode has one observation at a time."""
        return self._turns[said.get("session", "")]

    def named(self, session: str) -> Stream:
        """The stream that a control call means.

        Raises:
            InputError: several connections bear that name.
        """
        streams = self._streams.setdefault(session, [])
        connected = [one for one in streams if one.connections and not one.left] or streams[:1]
        if len(connected) > 1:
            raise InputError(
                f"{len(connected)} connections have the session {session!r}: give each its own with ?session=NAME"
            )
        if not connected:
            streams.append(Stream(self._keeper, Given(self._agent, session=session)))
        return (connected or streams)[0]

    async def close(self) -> None:
        """End what goes on: the proxy is stopped."""
        for stream in [stream for streams in self._streams.values() for stream in streams]:
            if stream.connections and not stream.left:
                stream.lost("the proxy was stopped")
            if stream.left and self._keeper.protocol.has_episodes:
                stream.end(None, LEFT)
            stream.end(None, "nothing said how this one ended")
            await stream.settled()
