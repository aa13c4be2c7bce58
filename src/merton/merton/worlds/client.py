"""`HostedWorld`: a world in a process and a virtual environment of its own, or on another machine."""

from __future__ import annotations

import json
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from merton.config import validated
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.world.action import ActionChunk
from merton.world.action_space import ActionSpace
from merton.world.geometry import Array
from merton.world.observation import CameraView
from merton.worlds.base import Carried, ExpertWorld, ForkableWorld, Judged, RobotState, SegmentedWorld
from merton.worlds.boundary import Given, differences, refuse_other_form, rows_of
from merton.worlds.description import Ability, WorldCamera, WorldDescription
from merton.worlds.link import Address, Link, Program

DEADLINE_S = 120.0
"""Default limit of a request [s]: longer than a hard reset of LIBERO on a busy machine, which takes 6 s alone."""
MOST_DIFFERENCES = 5
"""Of a description, that an error names."""


class Snapshot:
    """A state that the host keeps, under a number, for as long as this object lives."""

    def __init__(self, number: int, link: Link, place: tuple[str, int], dropped: deque[int]) -> None:
        self.number, self.link, self.place = number, link, place
        weakref.finalize(self, dropped.append, number).atexit = False


class HostedWorld(ForkableWorld, ExpertWorld, SegmentedWorld):
    """A world behind a host; what it can beyond `World` is what its description says.

    Every method is there; one whose ability is not among `description.abilities` raises InputError. The process is
    started, or the address connected to, by what needs it first. A request that fails raises InfrastructureError and
    ends the trial, and the process if that is to blame; the next `reset` begins anew. One thread at a time.

    Args:
        name: of the world, for texts.
        place: the process to start, or the address of a host.
        expected: the description of earlier, such as a run's that is resumed; a world that describes itself otherwise
            is refused. None accepts the first description, and no other one after it.
        deadline_s: limit of every request [s]; a process that takes longer is killed.
    """

    def __init__(
        self,
        name: str,
        place: Program | Address,
        expected: WorldDescription | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._name = name
        self._place, self._description = place, expected
        self.deadline_s = deadline_s
        self._link: Link | None = None
        self._trial = ""  # "task push, scene 3" while one is under way
        self._rows = 0
        self._state, self._judged = RobotState(), Judged(False)
        self._dropped: deque[int] = deque()

    @property
    def description(self) -> WorldDescription:
        """As the world gives it; starts the process unless it is known."""
        if self._description is None:
            self._start()
        assert self._description is not None
        return self._description

    @property
    def name(self) -> str:
        """As `World.name`."""
        return self._name

    @property
    def abilities(self) -> tuple[Ability, ...]:
        """As `World.abilities`."""
        return self.description.abilities

    @property
    def camera_names(self) -> tuple[str, ...]:
        """As `World.camera_names`."""
        return self.description.camera_names

    @property
    def action(self) -> ActionSpace:
        """As `World.action`."""
        return self.description.action

    @property
    def pid(self) -> int | None:
        """The process of the world; None before its start and at an address."""
        return None if self._link is None else self._link.pid

    def reset(self, task: str, scene: int) -> str:
        """As `World.reset`; InputError for a task or scene that is not described."""
        description = self.description
        if task not in description.task_names:
            raise UnknownNameError(f"task of world {self.name!r}", task, description.task_names)
        scenes = description.task(task).scenes
        if not 0 <= scene < scenes:
            raise InputError(f"task {task!r} of world {self.name!r} has the scenes 0..{scenes - 1}, got {scene}")
        self._trial = ""
        if self._link is not None and not self._link.is_alive():
            self._drop_link()
        self._start()
        reply = self._ask("reset", task=task, scene=int(scene))
        self._trial, self._rows = f"task {task}, scene {scene}", 0
        self._take_in(reply)
        with self._given() as given:
            return given.text("the instruction", reply.get("instruction"))

    def look(self, camera: str, depth: bool = False) -> CameraView:
        """As `World.look`; the camera of another world is not calibrated."""
        described = self._camera(camera)
        if depth:
            self._needs("depth")
        reply = self._ask_in_trial("look", camera=camera, depth=depth)
        with self._given() as given:
            color = given.picture(described, reply.get("color"))
            depth_m = given.depth(described, reply.get("depth_m")) if depth else None
            return CameraView(camera, color, depth_m, None, None, self._time_ns)

    def things(self, camera: str) -> NDArray[np.bool_]:
        """As `SegmentedWorld.things`."""
        self._needs("things")
        described = self._camera(camera)
        reply = self._ask_in_trial("things", camera=camera)
        with self._given() as given:
            return given.mask(described, reply.get("things"))

    def carry_out(self, chunk: ActionChunk, stop_rule: str = "gate") -> Carried:
        """As `World.carry_out`; one message each way, with the state afterwards.

        Raises InfrastructureError, too, for a chunk of another form: the policy was not made for this world.
        """
        refuse_other_form(self.name, self.action, chunk)
        return self.carry_out_rows(chunk.deltas)

    def carry_out_rows(self, rows: ArrayLike) -> Carried:
        """As `carry_out`, of rows (n, columns); raises InputError for unusable ones."""
        asked = rows_of(self.description, rows)
        reply = self._ask_in_trial("carry_out", rows=asked)
        with self._given() as given:
            done = given.whole("rows", reply.get("rows"), len(asked))
            ended = given.text("ended", reply.get("ended"))
            if done < len(asked) and not ended:
                raise given.fault("a trial that goes on carries out every row", f"{done} of {len(asked)} rows")
        self._rows += done
        with self._given() as given:
            points = given.path(reply.get("points"), done)
        self._take_in(reply)
        return Carried(done, points, ended)

    def state(self) -> RobotState:
        """As `World.state`; it came with the last reply."""
        self._under_way()
        return replace(self._state, time_ns=self._time_ns)

    def judged(self) -> Judged:
        """As `World.judged`; it came with the last reply."""
        self._under_way()
        return self._judged

    def save(self) -> Snapshot:
        """As `ForkableWorld.save`; the host forgets it once nothing refers to it here."""
        self._needs("fork")
        reply = self._ask_in_trial("save")
        with self._given() as given:
            number = given.whole("the snapshot", reply.get("snapshot"), 2**62)
        assert self._link is not None
        return Snapshot(number, self._link, (self._trial, self._rows), self._dropped)

    def load(self, snapshot: Any) -> None:
        """As `ForkableWorld.load`; InfrastructureError for a snapshot of a process that has ended since."""
        self._needs("fork")
        if not isinstance(snapshot, Snapshot):
            raise InputError(f"world {self.name!r} goes back to what its own save() gave, got {snapshot!r}")
        if self._link is None or snapshot.link is not self._link:
            raise InfrastructureError(f"world {self.name!r}: the process of the snapshot has ended")
        reply = self._ask("load", snapshot=snapshot.number)
        self._trial, self._rows = snapshot.place
        self._take_in(reply)

    def expert(self, rows: int) -> Array:
        """As `ExpertWorld.expert`."""
        self._needs("expert")
        if rows < 1:
            raise InputError(f"an expert gives one row or more, {rows} were asked for")
        found = self._ask_in_trial("expert", rows=int(rows)).get("rows")
        columns = len(self.description.action.columns)
        if found is None:
            return np.zeros((0, columns))
        with self._given() as given:
            checked = given.numbers("the expert's rows", found, (None, columns))
            if len(checked) > rows:
                raise given.fault(f"{rows} were asked for", f"{len(checked)} rows of the expert")
        return checked

    def close(self) -> None:
        """As `World.close`; a later call that needs the process starts another one."""
        self._drop_link()

    @property
    def _time_ns(self) -> int:
        return round(self._rows * self.description.action.period_s * 1e9)

    def _start(self) -> None:
        """Make the link unless it is there; the description is asked, and compared."""
        if self._link is None:
            self._dropped = deque()
            self._link = Link(self.name, self._place)
            try:
                self._compare(self._ask("describe"))
            except InfrastructureError:
                self._drop_link()
                raise

    def _compare(self, given: dict[str, Any]) -> None:
        where = f"the description of world {self.name!r}"
        try:
            now = validated(WorldDescription, json.dumps(given), where)
        except InputError as error:
            raise InfrastructureError(str(error)) from None
        except (TypeError, ValueError) as error:
            raise InfrastructureError(f"{where} is of plain JSON values: {error}") from None
        if self._description is None:
            self._description = now
        elif now != self._description:
            found = differences(self._description, now)
            more = f" and {len(found) - MOST_DIFFERENCES} more" if len(found) > MOST_DIFFERENCES else ""
            raise InfrastructureError(
                f"world {self.name!r} is not the one of before: {', '.join(found[:MOST_DIFFERENCES])}{more}"
            )

    def _drop_link(self) -> None:
        self._trial = ""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        if self._link is None:
            raise InfrastructureError(f"world {self.name!r} has no process: reset begins a trial anew")
        dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
        try:
            return self._link.ask(do, self.deadline_s, drop=dropped, **arguments)
        except BaseException:
            self._trial = ""
            if not self._link.is_alive():
                self._drop_link()
            raise

    def _ask_in_trial(self, do: str, **arguments: Any) -> dict[str, Any]:
        self._under_way()
        return self._ask(do, **arguments)

    def _under_way(self) -> None:
        if not self._trial:
            raise InfrastructureError(f"world {self.name!r} has no trial under way: reset begins one")

    def _take_in(self, reply: dict[str, Any]) -> None:
        """The state and the judgement that come with a reply."""
        now = reply.get("now")
        with self._given() as given:
            if not isinstance(now, dict):
                raise given.fault("a reply has the state", "none")
            self._state = given.state(self.description, now.get("state"))
            progress = now.get("progress")
            success = given.flag("success", now.get("success"))
            self._judged = Judged(success, None if progress is None else given.share("progress", progress))

    @contextmanager
    def _given(self) -> Iterator[Given]:
        """Around checks of a reply: one that fails ends the trial."""
        try:
            yield Given(self.name, self._trial, self._rows)
        except InfrastructureError:
            self._trial = ""
            raise

    def _camera(self, name: str) -> WorldCamera:
        found = next((camera for camera in self.description.cameras if camera.name == name), None)
        if found is None:
            raise UnknownNameError(f"camera of world {self.name!r}", name, self.description.camera_names)
        return found

    def _needs(self, ability: Ability) -> None:
        able = self.description.abilities
        if ability not in able:
            raise InputError(f"world {self.name!r} has no ability {ability!r}, only: {', '.join(able) or 'none'}")
