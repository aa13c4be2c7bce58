"""Policies behind OpenVLA's REST protocol: POST /act with an image and an instruction, the reply is an array.

Servers of OpenVLA-OFT speak it with several images, under names of their own, and the arm's state.

The protocol does not distinguish a failed model from a request that the server rejects: both are the string "error".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from merton.config import Model, validated
from merton.decision.models.base import Policy, PolicyEntry
from merton.decision.models.conventions import Convention
from merton.decision.models.images import prepared
from merton.decision.models.states import state_of
from merton.errors import InputError, InvalidActionError
from merton.models.base import Finding
from merton.models.catalogue import ImagePreparation
from merton.models.remote import HttpServer, Patience, check_server
from merton.models.serving import from_json, to_json
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation


class ActSettings(Model):
    """The settings of a catalogue entry.

    Attributes:
        url: address of the server, without /act.
        images: keys of the images, in the order of the entry's cameras.
        noise_seed: send the observation's seed as `noise_seed`; only servers of `merton model serve` accept it.
        patience: deadline and retries.
    """

    url: str = "http://127.0.0.1:8000"
    images: Annotated[tuple[str, ...], Field(min_length=1)] = ("image",)
    noise_seed: bool = False
    patience: Patience = Patience()


class OpenVlaRest(Policy):
    """A client that sends images, unprepared unless `image` says that the adapter prepares them.

    Args:
        name: name in the catalogue.
        chosen: address of the server.
        convention: the meaning of the numbers in the reply.
        cameras: the views to send, in the order of `chosen.images`.
        unnorm_key: data set whose statistics the server un-normalises with; "": the server's default.
        prompt: text with {instruction} in it; the server adds OpenVLA's own words.
        state: the arm's state to send under "state", as of `state_of`; "none" sends nothing.
        image: preparation of the images.

    Raises:
        MissingDependencyError: the extra `remote` is not installed.
        InputError: not an address, or not a camera for each key.
    """

    adapter_version = "3"

    def __init__(
        self,
        name: str,
        chosen: ActSettings,
        convention: Convention,
        cameras: tuple[str, ...] = ("top",),
        unnorm_key: str = "",
        prompt: str = "{instruction}",
        state: str = "none",
        image: ImagePreparation | None = None,
    ) -> None:
        self.name, self.cameras = name, cameras
        self._state, self._image = state, image or ImagePreparation(by="server")
        if len(cameras) != len(chosen.images):
            needed = f"{len(chosen.images)} of `cameras`"
            raise InputError(
                f"{name}: its server is shown {', '.join(chosen.images)}, so it needs {needed}, and has {len(cameras)}"
            )
        self._chosen, self._convention, self._unnorm_key, self._prompt = chosen, convention, unnorm_key, prompt
        self._server = HttpServer(chosen.url, chosen.patience)

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> OpenVlaRest:
        """The policy of a catalogue entry; raises InputError for one without a convention, or that is stateful."""
        if (convention := entry.means) is None:
            raise InputError(f"{entry.name}: /act needs a convention")
        if entry.stateful:
            raise InputError(
                f"{entry.name}: /act has no sessions, so its server cannot keep a state for each side of an image: "
                "leave `stateful` out, or serve it behind openpi's protocol"
            )
        chosen = validated(ActSettings, dict(entry.settings), f"the settings of {entry.name}")
        words = entry.unnorm_key, entry.prompt
        return cls(entry.name, chosen, convention, entry.cameras, *words, entry.state, entry.image)

    def act(self, observation: Observation) -> ActionChunk:
        """The server's array, converted; never done.

        Raises:
            InputError: the view is missing.
            InvalidActionError: the reply is "error", or no array of finite numbers of the right shape.
            InfrastructureError: no reply within the deadline and the attempts; the text lists the attempts.
        """
        started = time.perf_counter()
        self.require_views(observation)
        images = [observation.views[camera].color for camera in self.cameras]
        state = None if self._state == "none" else state_of(observation, self._state, self._convention)
        raw = self.array(images, observation.instruction, observation.noise_seed, state)
        return self._convention.chunk(raw, model=self.name, latency_s=time.perf_counter() - started)

    def array(
        self, images: Sequence[Image], instruction: str, noise_seed: int, state: np.ndarray | None = None
    ) -> np.ndarray:
        """The array of the server's reply, as it is; raises InvalidActionError and InfrastructureError as `act`."""
        if self._image.by == "adapter":
            images = [np.asarray(prepared(image, self._image)) for image in images]
        body: dict[str, Any] = {key: to_json(image) for key, image in zip(self._chosen.images, images, strict=True)}
        body["instruction"] = self._prompt.replace("{instruction}", instruction)
        if state is not None:
            body["state"] = to_json(state)
        if self._unnorm_key:
            body["unnorm_key"] = self._unnorm_key
        if self._chosen.noise_seed:
            body["noise_seed"] = noise_seed

        async def attempt() -> Any:
            return (await self._server.request("POST", "/act", body)).json()

        return self._array(self._server.call(attempt))

    def check(self) -> Iterator[Finding]:
        """The server's action on the example; the protocol has no other request."""
        return check_server(super().check())

    def _array(self, reply: Any) -> np.ndarray:
        if reply == "error":
            raise InvalidActionError(
                f"the server of {self.name} says 'error': its model failed or refuses the request; its log knows which"
            )
        try:
            if isinstance(reply, str):  # from servers asked with "encoded", and from some forks always
                reply = json.loads(reply)
            if isinstance(reply, dict) and (named := [key for key in ("action", "actions") if key in reply]):
                reply = reply[named[0]]  # as other servers of /act put it
            return np.asarray(from_json(reply))
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidActionError(f"the reply of {self.name} is no array: {error}") from None
