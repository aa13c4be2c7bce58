"""Policies behind openpi's websocket protocol: the Pi0 family, RoboArena's variant, and any server that speaks it.

The server sends its metadata on connecting. It replies to each observation, a dictionary in msgpack, with another one
that has the key "actions". A text frame is a traceback, after which the server closes the connection. The keys of an
observation differ between robots; they are data, in `DIALECTS`.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from merton.config import Model, validated
from merton.decision.models.base import Policy, PolicyEntry
from merton.decision.models.conventions import Convention
from merton.decision.models.images import resize_with_padding
from merton.decision.models.states import state_of
from merton.errors import InfrastructureError, InputError, InvalidActionError, UnknownNameError
from merton.hosts import is_loopback_url
from merton.models.base import Finding
from merton.models.remote import (
    MAX_REPLY_BYTES,
    HttpServer,
    Patience,
    Remote,
    TransientError,
    check_server,
    check_url,
    optional,
)
from merton.models.serving import pack, unpack
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation

Pair = Annotated[tuple[int, ...], Field(min_length=2, max_length=2)]


class Dialect(Model):
    """The form of the observations that the servers of one robot expect.

    Attributes:
        images: keys of the images, in the order of the entry's cameras; with fewer cameras the last keys are unused.
        images_under: key of a dictionary that holds the images; "" if they are beside the other values.
        channels_first: (3, height, width) instead of (height, width, 3).
        size_px: (height, width) of the images, padded with black; None: they are not resized.
        state: key to the range [first, last + 1) of the state that is sent under it.
        prompt: key of the instruction.
        endpoint: RoboArena's variant: every message names an endpoint, and the metadata may set the size of images.
        action_space: value that the metadata of such a server must have under that name; "" for any.
    """

    images: tuple[str, ...]
    images_under: str = ""
    channels_first: bool = False
    size_px: Pair | None = (224, 224)
    state: Mapping[str, Pair] = {}
    prompt: str = "prompt"
    endpoint: bool = False
    action_space: str = ""


_DROID_STATE: dict[str, Any] = {"observation/joint_position": (0, 7), "observation/gripper_position": (7, 8)}
DIALECTS = {
    "droid": Dialect(images=("observation/exterior_image_1_left", "observation/wrist_image_left"), state=_DROID_STATE),
    "libero": Dialect(images=("observation/image", "observation/wrist_image"), state={"observation/state": (0, 8)}),
    "aloha": Dialect(
        images=("cam_high", "cam_left_wrist", "cam_right_wrist", "cam_low"),
        images_under="images",
        channels_first=True,
        state={"state": (0, 14)},
    ),
    "ur5": Dialect(images=("base_rgb", "wrist_rgb"), state={"joints": (0, 6), "gripper": (6, 7)}),
    "roboarena": Dialect(
        images=("observation/exterior_image_0_left", "observation/wrist_image_left"),
        state=_DROID_STATE,
        endpoint=True,
        action_space="joint_velocity",
    ),
}
"""openpi's policies droid_policy.py, libero_policy.py, aloha_policy.py, examples/ur5; RoboArena's policy_server.py."""


class OpenPiSettings(Model):
    """The settings of a catalogue entry.

    Attributes:
        url: address of the server, ws:// or wss://.
        dialect: a name of `DIALECTS`, or another dialect, written out.
        rows: of each chunk, the first ones that are carried out before the server is asked again; 0 for all.
        patience: deadline and retries. The first inference of a server that compiles takes a minute.
    """

    url: str = "ws://127.0.0.1:8000"
    dialect: str | Dialect = "droid"
    rows: Annotated[int, Field(ge=0)] = 0
    patience: Patience = Patience(deadline_s=180.0)


class OpenPi(Policy):
    """A client with one connection, which carries one request at a time.

    That of a stateful policy is a session: it is opened anew for each trial, and not once more if it breaks.

    Args:
        name: name in the catalogue.
        chosen: address and dialect of the server.
        convention: the meaning of the numbers in the reply, and the state to send for an arm other than the cell's.
        cameras: the views to send, in the order of the dialect's keys.
        state: "none", "tool" or "joints"; see `state_of`.
        prompt: text with {instruction} in it.
        stateful: whether the server keeps a state for each connection.

    Attributes:
        honours_noise_seed: whether the server draws noise from the seed in the request, by the metadata of the last
            connection; None before the first. If False, score a stochastic policy beside a repeat-noise floor.

    Raises:
        MissingDependencyError: the extra `remote` is not installed.
        InputError: not an address, no such dialect, or more cameras than it has keys for.
    """

    adapter_version = "4"

    def __init__(
        self,
        name: str,
        chosen: OpenPiSettings,
        convention: Convention,
        cameras: tuple[str, ...],
        state: str = "none",
        prompt: str = "{instruction}",
        stateful: bool = False,
    ) -> None:
        self.name, self.cameras = name, cameras
        self._stateful, self._begins, self._session = stateful, True, "merton"
        self.honours_noise_seed: bool | None = None
        if isinstance(chosen.dialect, str) and chosen.dialect not in DIALECTS:
            raise UnknownNameError("dialect", chosen.dialect, DIALECTS)
        self._dialect = DIALECTS[chosen.dialect] if isinstance(chosen.dialect, str) else chosen.dialect
        if not 1 <= len(cameras) <= len(self._dialect.images):
            raise InputError(f"{name}: its dialect takes 1 to {len(self._dialect.images)} cameras, got {len(cameras)}")
        self._chosen, self._convention, self._state, self._prompt = chosen, convention, state, prompt
        check_url(chosen.url, ("ws", "wss"))
        self._websockets = optional("websockets")
        optional("msgpack")
        optional("PIL.Image")
        optional("websockets.asyncio.client")
        self._server = Remote(chosen.url, chosen.patience)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = asyncio.Lock()
        self._connection: Any = None
        self._metadata: dict[Any, Any] = {}

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> OpenPi:
        """The policy of a catalogue entry; raises InputError for an entry without a convention or with bad settings."""
        if (convention := entry.means) is None:
            raise InputError(f"{entry.name}: a policy behind openpi needs a convention")
        chosen = validated(OpenPiSettings, dict(entry.settings), f"the settings of {entry.name}")
        return cls(entry.name, chosen, convention, entry.cameras, entry.state, entry.prompt, entry.stateful)

    def begin_trial(self) -> None:
        """A stateful server's session ends; the next request opens another one."""
        self._begins = True

    def act(self, observation: Observation) -> ActionChunk:
        """The server's actions, converted; never done.

        Raises:
            InputError: a view is missing.
            InvalidActionError: the model failed (the text has the last line of its traceback), or the reply is no array
                of finite numbers of the right shape.
            InfrastructureError: no reply within the deadline and the attempts; the text lists the attempts.
        """
        started = time.perf_counter()
        self.require_views(observation)
        sent = state_of(observation, self._state, self._convention)
        reply = self._server.call(lambda: self._infer(observation, sent))
        raw = reply.get("actions") if isinstance(reply, dict) else None
        if not isinstance(raw, np.ndarray):
            raise InvalidActionError(f"the reply of {self.name} has no array under 'actions'")
        raw = np.atleast_2d(raw)[: self._chosen.rows or None]
        used = sent if self._convention.rest else None
        return self._convention.chunk(raw, state=used, model=self.name, latency_s=time.perf_counter() - started)

    def check(self) -> Iterator[Finding]:
        """The server's health and metadata, then its action on the example."""
        return check_server(self._findings())

    def _findings(self) -> Iterator[Finding]:
        if not self._dialect.endpoint:  # RoboArena's servers have no such page
            health = HttpServer("http" + self._chosen.url.removeprefix("ws"), self._chosen.patience)
            health.call(lambda: health.request("GET", "/healthz"))
        metadata = self._server.call(self._greet)
        yield Finding("server", True, f"{self._chosen.url} says {metadata}")
        yield from super().check()

    async def _greet(self) -> str:
        async def metadata(_: Any) -> str:
            return f"{self._metadata}"[:300]

        return str(await self._exchange(metadata))

    async def _infer(self, observation: Observation, sent: NDArray[np.float64]) -> Any:
        async def inference(connection: Any) -> Any:
            if self._dialect.endpoint and (self._begins or not self._stateful):
                # a policy may remember earlier images, and observations are not one episode, unless it is stateful
                await connection.send(pack({"endpoint": "reset"}))
                await connection.recv()
            await connection.send(pack(self._request(observation, sent)))
            reply = await connection.recv()
            self._begins = False  # until then a new connection begins the trial as well
            if isinstance(reply, str):
                last = (reply.strip().splitlines() or ["(nothing)"])[-1]
                raise InvalidActionError(f"{self.name} failed behind {self._chosen.url}: {last[:300]}")
            try:
                return unpack(reply)
            except ValueError as error:
                raise InvalidActionError(f"the reply of {self.name} cannot be read: {error}") from None

        return await self._exchange(inference)

    async def _exchange(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """One attempt. Any error ends the connection: a late reply must not be taken for the next one."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # the first call, or a fork, after which the connection is the parent's
            self._loop, self._lock, self._connection = loop, asyncio.Lock(), None
        async with self._lock:
            completed = False
            try:
                await self._enter_session()
                if self._connection is None:
                    await self._connect()
                result = await work(self._connection)
                completed = True
                return result
            except (OSError, self._websockets.exceptions.WebSocketException) as error:
                raise TransientError(f"{type(error).__name__} {error}".strip()) from None
            finally:
                if not completed and self._connection is not None:
                    self._connection.transport.abort()
                    self._connection = None

    async def _enter_session(self) -> None:
        """Leave the session of an earlier trial; raises InfrastructureError if that of this one has been lost."""
        if not self._stateful:
            return
        if self._begins and self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.close()
        if not self._begins and self._connection is None:
            raise InfrastructureError(
                f"the session of {self.name} at {self._chosen.url} has broken, and with it what the server remembered "
                "of this trial"
            )

    async def _connect(self) -> None:
        """Connect and read the metadata; raises InfrastructureError if the server is not one of openpi's kind."""
        url = self._chosen.url
        self._connection = await self._websockets.asyncio.client.connect(
            url,
            compression=None,
            max_size=MAX_REPLY_BYTES,
            ping_interval=None,  # openpi's server does not answer pings while it infers
            open_timeout=None,
            proxy=None if is_loopback_url(url) else True,
        )
        greeting = await self._connection.recv()
        try:
            metadata = unpack(greeting) if isinstance(greeting, bytes) else None
        except ValueError:
            metadata = None
        if not isinstance(metadata, dict):
            raise InfrastructureError(f"{url} does not greet as openpi's servers do")
        self._metadata, self.honours_noise_seed = metadata, metadata.get("noise_seed") is True
        if self._stateful and metadata.get("sessions") is False:
            raise InfrastructureError(
                f"{url} keeps one state for all its connections, and {self.name} is stateful: its class needs "
                "session() (docs/use/serving.md)"
            )
        self._session = f"merton-{uuid.uuid4()}" if self._stateful else "merton"
        if self._dialect.endpoint:
            space, wanted = metadata.get("action_space"), self._dialect.action_space
            if space is not None and wanted not in ("", space):
                raise InfrastructureError(f"{url} acts in {space!r}, but {self.name} is meant for {wanted!r}")
            if not _is_size(metadata.get("image_resolution")):
                raise InfrastructureError(f"{url} asks for images of size {metadata['image_resolution']!r}")

    def _request(self, observation: Observation, sent: NDArray[np.float64]) -> dict[str, Any]:
        images = [observation.views[camera].color for camera in self.cameras]
        return self.request(images, sent, observation.instruction, observation.noise_seed)

    def request(
        self, images: Sequence[Image], state: NDArray[np.floating[Any]], instruction: str, noise_seed: int
    ) -> dict[str, Any]:
        """An observation in the server's dialect, with images of the size that its metadata asks for.

        Args:
            images: (height, width, 3) uint8 RGB, in the order of the dialect's keys.
            state: all numbers of it.
            instruction: in words; put into the entry's prompt.
            noise_seed: sent to a server that honours it.

        Raises:
            InputError: the state is too short.
        """
        dialect = self._dialect
        if (needed := max((after for _, after in dialect.state.values()), default=0)) > len(state):
            raise InputError(f"{self.name} needs a state of {needed} numbers, and has {len(state)}")
        size = dialect.size_px
        if dialect.endpoint and "image_resolution" in self._metadata:
            size = self._metadata["image_resolution"]
        shown = {
            key: prepared(image, size, dialect.channels_first)
            for key, image in zip(dialect.images, images, strict=False)
        }
        request: dict[str, Any] = {dialect.images_under: shown} if dialect.images_under else dict(shown)
        request |= {key: state[first:after] for key, (first, after) in dialect.state.items()}
        request[dialect.prompt] = self._prompt.replace("{instruction}", instruction)
        if self.honours_noise_seed:
            request["noise_seed"] = noise_seed
        if dialect.endpoint:
            request |= {"endpoint": "infer", "session_id": self._session}
        return request


def _is_size(value: Any) -> bool:
    """Whether a value is None or a plausible (height, width) [px]."""
    return value is None or (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(type(length) is int and 1 <= length <= 4096 for length in value)
    )


def prepared(image: Image, size_px: Any, channels_first: bool) -> Image:
    """An image in a dialect's form; `size_px` is (height, width) or None."""
    if size_px is not None:
        image = resize_with_padding(image, int(size_px[0]), int(size_px[1]))
    return np.ascontiguousarray(image.transpose(2, 0, 1)) if channels_first else image
