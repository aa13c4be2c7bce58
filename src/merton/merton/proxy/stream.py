"""The episodes of one harness: when they begin, what is shown in them, what was decided, how they end."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from merton.episodes.episode import Episode
from merton.episodes.pairs import frame_sha256, scene_of_frame
from merton.episodes.run import EpisodesRun
from merton.errors import MertonError, describe_error
from merton.proxy.given import Given
from merton.proxy.latency import Latency
from merton.proxy.pictures import Picture, pieces
from merton.proxy.protocols.base import Message, Protocol, Reply
from merton.proxy.shadow import Asker
from merton.proxy.spans import Piece

Result = TypeVar("Result")
LEFT = "the harness left before the episode's end"
MOST_WAITING = 32
"""Observations of a harness that wait to be written down, before the next one is held back. Ours."""


class Keeper:
    """The run, its one thread, and what is counted.

    Args:
        run: that takes the episodes.
        protocol: of harness and policy.
        say: prints a line for the person who started the proxy.
    """

    def __init__(self, run: EpisodesRun, protocol: Protocol, say: Callable[[str], None]) -> None:
        self.run, self.protocol = run, protocol
        self.latency = Latency()
        self.counts: Counter[str] = Counter()
        self._say, self._said = say, set[str]()
        self._thread = ThreadPoolExecutor(1, "record")

    async def do(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do something with the run, after all that was asked for before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def note(self, kind: str, line: str) -> None:
        """Count something, and say it the first time."""
        self.counts[kind] += 1
        if kind not in self._said:
            self._said.add(kind)
            self._say(line)

    def beside(self, tasks: set[asyncio.Task[Any]], work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside the relay; it is one of `tasks` until it is over, and a failure is counted and said."""
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(partial(self._over, tasks))
        return task

    def _over(self, tasks: set[asyncio.Task[Any]], task: asyncio.Task[Any]) -> None:
        tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            why = str(error)
            if isinstance(error, Exception) and not isinstance(error, MertonError):
                why = describe_error(error)
            self.note("unwritten", f"something of an episode could not be written down: {why}")

    def close(self) -> None:
        """Finish what is to be written down, and the run."""
        self._thread.shutdown()
        self.run.close()


class Running:
    """An episode that goes on.

    Attributes:
        episode: in the run.
        begins: the messages of the harness that a second session gets before an observation.
        steps: observations so far.
        error: the policy's last one; "" if its last answer was none.
    """

    def __init__(self, keeper: Keeper, episode: Episode, shadow: Asker, begins: list[bytes]) -> None:
        self.keeper, self.episode, self.shadow, self.begins = keeper, episode, shadow, begins
        self.steps, self.error = 0, ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._over = False

    def distorts(self) -> bool:
        """Whether an observation may look other than it was sent."""
        return not self.episode.is_clean

    def looks_at(self, step: int) -> bool:
        """Whether the pictures of an observation matter to the record; of undistorted ones few are kept."""
        every = self.keeper.run.design.clean_every
        return self.distorts() or step == 0 or (every > 0 and step % every == 0)

    def show(self, step: int, pictures: Mapping[str, Picture]) -> tuple[list[Piece], float]:
        """Show an observation: what to replace in its message, and how long that took [s]; in the run's thread."""
        began_s = time.perf_counter()
        clean = {camera: picture.read() for camera, picture in pictures.items()}
        shown = self.episode.show(step, clean)
        return pieces(pictures, clean, shown), time.perf_counter() - began_s

    async def keep(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something beside the relay; waits while too much is to be done."""
        while len(self._tasks) >= MOST_WAITING:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        self.keeper.beside(self._tasks, work)

    async def observed(self, message: Message) -> tuple[int, list[Piece], float]:
        """Take an observation: its step, what to replace in its message, and how long distorting took [s]."""
        step, self.steps = self.steps, self.steps + 1
        if not message.pictures:
            why = message.problem or "it has no picture that is understood"
            self.keeper.note("unseen", f"an observation is passed on as it is: {why}")
            await self.keep(self.keeper.do(self.episode.passed, step, why))
        elif self.distorts():
            return step, *await self._shown(step, message.pictures)
        elif self.looks_at(step):
            await self.keep(self._shown(step, message.pictures))
        return step, [], 0.0

    async def _shown(self, step: int, pictures: Mapping[str, Picture]) -> tuple[list[Piece], float]:
        """As `show`, after all that was asked of the run before; nothing is replaced where a picture is unreadable."""
        try:
            return await self.keeper.do(self.show, step, pictures)
        except ValueError as error:  # InputError, too
            why = f"a picture cannot be read: {error}"
            self.keeper.note("unread", f"an observation is passed on as it is: {why}")
            await self.keeper.do(self.episode.passed, step, why)
            return [], 0.0

    async def answered(self, step: int, reply: Reply, asked: bytes | None, added_s: float) -> None:
        """Write down an answer; `asked` is the message that a second session is to be asked about, if any."""
        self.error = reply.error
        clean = None
        if asked is not None:
            found = await self.shadow.ask(self.begins, asked)
            if isinstance(found, str) or found.action is None:
                why = found if isinstance(found, str) else found.error or "its answer has no action"
                self.keeper.note("shadow", f"no undistorted answer, so no decision score: {why}")
                await self.keeper.do(self.episode.note, f"observation {step}: no undistorted answer: {why}")
            else:
                clean = found.action
        if reply.action is None and not reply.error:
            self.keeper.note("no_action", "an answer has no action of numbers, and gets no decision score")
        if reply.error:
            await self.keeper.do(self.episode.note, f"observation {step}: the policy failed: {reply.error}")
        await self.keeper.do(self.episode.decided, step, reply.action, clean, added_s)

    async def end(self, success: bool | None, why: str = "") -> None:
        """End it, after all that is to be written down of it; a second end changes nothing."""
        if self._take_end():
            await self._settled()
            said = f"the policy failed: {self.error}" if self.error and not success else why
            if self.episode.undistorted:
                self.keeper.note(
                    "undistorted",
                    f"an episode of {self.episode.condition} counts in no pair: {self.episode.undistorted}",
                )
            await self.keeper.do(self.episode.end, success, said)

    async def lost(self, why: str) -> None:
        """End it as no outcome of the policy."""
        if self._take_end():
            await self._settled()
            await self.keeper.do(self.episode.lost, why)

    def _take_end(self) -> bool:
        over, self._over = self._over, True
        return not over

    async def _settled(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.shadow.close()


class Stream:
    """The episodes of one harness, one after the other.

    Args:
        keeper: of the run.
        given: what its address says about all of them.

    Attributes:
        running: the episode that goes on, if any.
        next: what is known about the one that begins with the next observation; None if none begins so.
        called: whether a control call said that.
        connections: websockets that belong to it now.
        left: whether the harness has closed the last one of them.
    """

    def __init__(self, keeper: Keeper, given: Given) -> None:
        self.keeper, self.given = keeper, given
        self.running: Running | None = None
        self.next: Given | None = given
        self.called = False
        self.connections, self.left = 0, False
        self._endings: set[asyncio.Task[Any]] = set()

    def say(self, given: Given, called: bool = False) -> None:
        """An episode begins with the next observation; the one that goes on ends without an outcome."""
        self.end(None, "the next episode began, and nothing said how this one ended")
        self.next, self.called = given, called

    async def begin(self, given: Given, instruction: str, shadow: Asker, begins: list[bytes]) -> Running:
        """Begin an episode, of which task and scene are known; the one before ends without an outcome."""
        self.end(None, "the next episode began, and nothing said how this one ended")
        self.next, self.called = None, False
        task, scene = " ".join((given.task or "unnamed").split()), number_of(given.scene or 0)
        work = partial(self.keeper.run.begin, instruction=instruction)
        episode = await self.keeper.do(work, given.agent, task, scene, given.condition)
        if not episode.recorded:
            shown = "undistorted" if episode.is_clean else str(episode.condition)
            line = (
                f"an episode beyond the design (scene {episode.task}.{episode.scene}) is not recorded, and is {shown}"
            )
            self.keeper.note("beyond", line)
        self.running = Running(self.keeper, episode, shadow, begins)
        return self.running

    def end(self, success: bool | None, why: str = "") -> asyncio.Task[Any] | None:
        """End the episode that goes on, if any, beside the relay; gives the task that does it."""
        running, self.running = self.running, None
        return None if running is None else self.keeper.beside(self._endings, running.end(success, why))

    def lost(self, why: str) -> None:
        """End the episode that goes on, if any, as no outcome of the policy."""
        running, self.running = self.running, None
        if running is not None:
            self.keeper.note("lost", f"an episode was lost, and its condition will be given again: {why}")
            self.keeper.beside(self._endings, running.lost(why))

    async def settled(self) -> None:
        """Wait until all endings are written down."""
        if self._endings:
            await asyncio.wait(self._endings)


def known(given: Given, message: Message) -> Given:
    """What is known about an episode that begins with an observation.

    Without a task it is the instruction; without a scene, the first pixels of all cameras: equal ones are one scene.
    Observations whose pictures cannot be read are all of one scene, as are those without pictures.
    """
    task = given.task or message.instruction or "unnamed"
    scene = given.scene
    if scene is None:
        try:
            seen = {camera: picture.read() for camera, picture in message.pictures.items()}
        except ValueError:
            seen = {}
        scene = scene_of_frame(frame_sha256(seen))
    return replace(given, task=task, scene=number_of(scene))


def number_of(scene: int | str) -> int:
    """The number of a scene; that of a text is made of its SHA-256, as that of a picture."""
    return scene if isinstance(scene, int) else scene_of_frame(hashlib.sha256(scene.encode()).hexdigest())
