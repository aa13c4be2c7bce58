"""Policies behind OpenVLA's REST protocol: POST /act with an image and an instruction, the reply is an array.

The protocol does not distinguish a failed model from a request that the server rejects: both are the string "error".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from merton.config import Model, validated
from merton.decision.models.base import Policy, PolicyEntry
from merton.decision.models.conventions import Convention
from merton.errors import InputError, InvalidActionError
from merton.models.base import Finding
from merton.models.remote import HttpServer, Patience, check_server
from merton.models.serving import from_json, to_json
from merton.world.action import ActionChunk
from merton.world.observation import Image, Observation


class ActSettings(Model):
    """The settings of a catalogue entry.

    Attributes:
        url: address of the server, without /act.
        noise_seed: send the observation's seed as `noise_seed`; only servers of `merton model serve` accept it.
        patience: deadline and retries.
    """

    url: str = "http://127.0.0.1:8000"
    noise_seed: bool = False
    patience: Patience = Patience()


class OpenVlaRest(Policy):
    """A client that sends the image of one camera unprepared: the server prepares it.

    Args:
        name: name in the catalogue.
        chosen: address of the server.
        convention: the meaning of the numbers in the reply.
        camera: the view to send.
        unnorm_key: data set whose statistics the server un-normalises with; "": the server's default.
        prompt: text with {instruction} in it; the server adds OpenVLA's own words.

    Raises:
        MissingDependencyError: the extra `remote` is not installed.
        InputError: not an address.
    """

    adapter_version = "2"

    def __init__(
        self,
        name: str,
        chosen: ActSettings,
        convention: Convention,
        camera: str = "top",
        unnorm_key: str = "",
        prompt: str = "{instruction}",
    ) -> None:
        self.name, self.cameras = name, (camera,)
        self._chosen, self._convention, self._unnorm_key, self._prompt = chosen, convention, unnorm_key, prompt
        self._server = HttpServer(chosen.url, chosen.patience)

    @classmethod
    def from_entry(cls, entry: PolicyEntry) -> OpenVlaRest:
        """The policy of a catalogue entry; raises InputError unless it has one camera and a convention."""
        if len(entry.cameras) != 1 or (convention := entry.means) is None:
            raise InputError(f"{entry.name}: /act takes one camera and needs a convention")
        chosen = validated(ActSettings, dict(entry.settings), f"the settings of {entry.name}")
        return cls(entry.name, chosen, convention, entry.cameras[0], entry.unnorm_key, entry.prompt)

    def act(self, observation: Observation) -> ActionChunk:
        """The server's array, converted; never done.

        Raises:
            InputError: the view is missing.
            InvalidActionError: the reply is "error", or no array of finite numbers of the right shape.
            InfrastructureError: no reply within the deadline and the attempts; the text lists the attempts.
        """
        started = time.perf_counter()
        self.require_views(observation)
        raw = self.array(observation.views[self.cameras[0]].color, observation.instruction, observation.noise_seed)
        return self._convention.chunk(raw, model=self.name, latency_s=time.perf_counter() - started)

    def array(self, image: Image, instruction: str, noise_seed: int) -> np.ndarray:
        """The array of the server's reply, as it is; raises InvalidActionError and InfrastructureError as `act`."""
        body: dict[str, Any] = {
            "image": to_json(image),
            "instruction": self._prompt.replace("{instruction}", instruction),
        }
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
