"""Policies asked with a data set's own observations, whose rows are taken as they are: no cell, no arm, no convention.

An observation is a dictionary with the data set's own names: pictures (height, width, 3) uint8 RGB, vectors float32,
and the instruction as `task` (LeRobot's name) and `prompt` (openpi's). The rows are in the data set's own units.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from merton.config import validated
from merton.decision.models.base import POLICIES, PolicyEntry
from merton.decision.models.lerobot import LeRobot, picture
from merton.decision.models.openpi import Dialect, OpenPi, OpenPiSettings
from merton.decision.models.openvla_rest import ActSettings, OpenVlaRest
from merton.decision.spread import Rows, as_rows
from merton.errors import (
    InfrastructureError,
    InputError,
    InvalidActionError,
    MertonError,
    MissingDependencyError,
    UnknownNameError,
    is_infrastructure,
    reason_of,
)
from merton.models.checkpoints import fingerprint_of, hash_of, locate
from merton.models.serving import Model, ServingError

RowObservation = Mapping[str, Any]
TASK, PROMPT = "task", "prompt"
_ADDRESSES = ("ws://", "wss://", "http://", "https://")
FORMS = (
    "MODULE:CLASS with act(observation) -> rows, the folder of a LeRobot checkpoint, ws://HOST:PORT of an openpi "
    "server, http://HOST:PORT of an /act server, or a model of the catalogue that is one of these"
)


class RowPolicy(ABC):
    """A policy by rows. Equal observations and seeds should give equal rows: nothing is kept between two calls.

    Attributes:
        name: as it was given.
    """

    name: str

    @abstractmethod
    def answer(self, observation: RowObservation, noise_seed: int) -> Any:
        """The raw rows."""

    def ask(self, observation: RowObservation, noise_seed: int = 0) -> Rows:
        """The rows (n, columns) of an answer, n >= 1.

        Raises:
            InvalidActionError: the answer is no rows of finite numbers, or the model raised an error.
            InfrastructureError, MissingDependencyError: a server, an extra or weights are missing.
            InputError: the observation lacks what the policy looks at.
        """
        try:
            rows = self.answer(observation, noise_seed)
        except (InputError, InvalidActionError, MissingDependencyError, InfrastructureError):
            raise
        except Exception as error:  # a model may raise anything
            kind = InfrastructureError if is_infrastructure(error) else InvalidActionError
            raise kind(f"{self.name}: {reason_of(error)}") from error
        try:
            found = as_rows(rows)
        except (MertonError, TypeError, ValueError) as error:
            raise InvalidActionError(f"the answer of {self.name} cannot be used: {error}") from None
        if not found.size:
            raise InvalidActionError(f"the answer of {self.name} has no rows")
        return found


def row_policy(name: str, cameras: Sequence[str]) -> RowPolicy:
    """The policy of a name in one of `FORMS`.

    Args:
        cameras: keys of the data set's pictures, such as "observation.images.top"; models of the catalogue name them
            whole, or by what follows the last dot.

    Raises:
        InputError: another form, a class that cannot be built, or a model that gives no rows of a data set.
        UnknownNameError: no such model.
        MissingDependencyError: an extra is not installed.
    """
    if name.startswith(("ws://", "wss://")):
        return _OpenPiRows(name, OpenPiSettings(url=name, dialect=Dialect(images=("",))))
    if name.startswith(("http://", "https://")):
        return _ActRows(name, ActSettings(url=name), next(iter(cameras), ""))
    if (Path(name).expanduser() / "config.json").is_file():
        return _LeRobotRows(name, str(Path(name).expanduser()), "", {})
    if ":" in name:
        return _ClassRows(name)
    if "/" in name:
        raise InputError(f"{name!r} is no folder of a checkpoint; a policy is {FORMS}")
    if name not in POLICIES:
        raise UnknownNameError("vla", name, POLICIES)
    return _of_entry(POLICIES[name], cameras)


def _of_entry(entry: PolicyEntry, cameras: Sequence[str]) -> RowPolicy:
    if entry.adapter == "openpi":
        if not entry.cameras:
            raise InputError(f"{entry.name}: names no cameras, and a policy behind openpi is shown at least one")
        chosen = validated(OpenPiSettings, dict(entry.settings), f"the settings of {entry.name}")
        return _OpenPiRows(entry.name, chosen, [key_of(camera, cameras) for camera in entry.cameras], entry.prompt)
    if entry.adapter == "openvla_rest":
        if len(entry.cameras) != 1:
            raise InputError(f"{entry.name}: /act takes one camera, and its entry names {len(entry.cameras)}")
        act = validated(ActSettings, dict(entry.settings), f"the settings of {entry.name}")
        return _ActRows(entry.name, act, key_of(entry.cameras[0], cameras), entry.unnorm_key, entry.prompt)
    if entry.adapter == "lerobot":
        images = entry.settings.get("images", {})
        if not isinstance(images, dict):
            raise InputError(f"{entry.name}: images is a table of the checkpoint's names and cameras, got {images!r}")
        keys = {key: key if key in cameras else key_of(camera, cameras) for key, camera in images.items()}
        return _LeRobotRows(entry.name, entry.checkpoint, entry.revision, keys)
    raise InputError(f"{entry.name!r} gives motions of the tool of Merton's cell, no rows of a data set: name {FORMS}")


def fingerprint(name: str) -> str:
    """A hash of what a policy's answers come from, as far as it lies on this machine: 16 hexadecimal digits.

    Of a checkpoint all its files, or the commit of its snapshot; of MODULE:CLASS the module's file, not what that
    imports or loads. "" of a server, whose weights cannot be seen from here.
    """
    if name.startswith(_ADDRESSES):
        return ""
    folder = Path(name).expanduser()
    if not (folder / "config.json").is_file() and name in POLICIES:
        entry = POLICIES[name]
        if entry.adapter != "lerobot":
            return ""
        folder = locate(entry.checkpoint, entry.revision)
    if (folder / "config.json").is_file():
        return fingerprint_of(folder)
    module = name.partition(":")[0]
    found = [file for root in ("", *sys.path) if (file := Path(root, *module.split("."))).with_suffix(".py").is_file()]
    return hash_of([found[0].with_suffix(".py")]) if found else ""


def key_of(camera: str, cameras: Sequence[str]) -> str:
    """The key of a data set's pictures that a camera's name means; raises UnknownNameError for none."""
    if camera in cameras:
        return camera
    ends = [key for key in cameras if key.rpartition(".")[2] == camera]
    if len(ends) != 1:
        raise UnknownNameError("camera of the data set", camera, [key.rpartition(".")[2] for key in cameras])
    return ends[0]


class _ClassRows(RowPolicy):
    """A class of the user's, as `merton model serve` takes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self._model = Model(name, "act")
        except ServingError as error:
            raise InputError(str(error)) from error

    def answer(self, observation: RowObservation, noise_seed: int) -> Any:
        return self._model.actions({**observation, "noise_seed": noise_seed})["actions"]


class _OpenPiRows(RowPolicy, OpenPi):
    """A server of openpi's protocol. Without a model of the catalogue it gets the observation under its own names."""

    def __init__(
        self, name: str, chosen: OpenPiSettings, keys: Sequence[str] = (), prompt: str = "{instruction}"
    ) -> None:
        OpenPi.__init__(self, name, chosen, cast(Any, None), tuple(keys) or ("",), prompt=prompt)
        self._keys = tuple(keys)

    def answer(self, observation: RowObservation, noise_seed: int) -> Any:
        sent = {**observation, "noise_seed": noise_seed}
        reply = self._server.call(lambda: self._infer(cast(Any, sent), cast(Any, None)))
        if not isinstance(reply, dict) or not isinstance(reply.get("actions"), np.ndarray):
            raise InvalidActionError(f"the reply of {self.name} has no array under 'actions'")
        return reply["actions"]

    def _request(self, observation: Any, sent: Any) -> dict[str, Any]:
        if not self._keys:
            seed = {"noise_seed": observation["noise_seed"]} if self.honours_noise_seed else {}
            return {key: value for key, value in observation.items() if key != "noise_seed"} | seed
        images = [observation[own] for own in self._keys]
        state = np.ravel(observation.get("observation.state", ()))
        return self.request(images, state, observation[PROMPT], observation["noise_seed"])


class _ActRows(RowPolicy, OpenVlaRest):
    """A server of OpenVLA's /act: the picture of one camera and the instruction."""

    def __init__(
        self, name: str, chosen: ActSettings, camera: str, unnorm_key: str = "", prompt: str = "{instruction}"
    ) -> None:
        OpenVlaRest.__init__(self, name, chosen, cast(Any, None), (camera,), unnorm_key, prompt)

    def answer(self, observation: RowObservation, noise_seed: int) -> Any:
        return self.array([observation[self.cameras[0]]], observation[PROMPT], noise_seed)


class _LeRobotRows(RowPolicy, LeRobot):
    """A checkpoint of LeRobot's; `keys` maps its names of pictures to those of the data set where they differ."""

    def __init__(self, name: str, checkpoint: str, revision: str, keys: Mapping[str, str]) -> None:
        LeRobot.__init__(self, name, checkpoint, revision, cast(Any, None), {})
        self._keys = keys

    def answer(self, observation: RowObservation, noise_seed: int) -> Any:
        policy = self._ready()[0]
        import torch

        batch: dict[str, Any] = {TASK: [observation[TASK]]}
        for key in policy.config.input_features:
            own = self._keys.get(key, key)
            if own not in observation:
                raise InputError(
                    f"{self.name} looks at {key!r}, and the data set has only: {', '.join(sorted(observation))}"
                )
            value = np.asarray(observation[own])
            if value.ndim == 3:
                batch[key] = picture(policy, key, value)
            else:
                batch[key] = torch.from_numpy(value.astype(np.float32))[None]
        return self.rows(batch, noise_seed)
