"""Metrics that are trained by the code of others, in an environment of its own: the networks of pyiqa.

pyiqa cannot be imported beside Merton's torch, and its licence is not Merton's; so a process of that environment works
on one job and ends (`merton.perception.quality.pyiqa_trainer`). Ours: a process for a job instead of the routes of
`pyiqa_server`, because a training belongs to the command that asked for it, is killed with it, and uses the memory of
the accelerator for as long alone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton.errors import InfrastructureError, InputError, MissingDependencyError
from merton.files import locked_folder
from merton.perception.quality import pyiqa_trainer
from merton.perception.quality.learned.base import ELSEWHERE
from merton.perception.quality.learned.metric import WEIGHTS, check_epochs, check_references, checked_labels
from merton.perception.quality.learned.prepared import Item
from merton.perception.quality.learned.pyiqa_networks import EPOCHS, NETWORKS, RATE, Network
from merton.perception.quality.learned.weights import (
    Scale,
    check_card,
    make_card,
    read_card,
    read_extra,
    read_scale,
    refuse_other_training,
    write_weights,
)
from merton.perception.quality.pairs import ImagePair
from merton.processes import ONE_THREAD
from merton.progress import OnProgress, unseen
from merton.results.text import one_line
from merton.seeding import derive_seed

VARIABLE = "MERTON_IQA_PYTHON"
"""The interpreter of the environment where pyiqa is."""
MAKE = (
    "it runs in an environment of its own: `python -m venv pyiqa && pyiqa/bin/pip install pyiqa 'setuptools<81'`, then "
    f"`export {VARIABLE}=pyiqa/bin/python` (docs/studies/quality.md)"
)
LINE, START = "output_line", "start"
"""Arrays of a file of weights: factor and offset of the network's outputs, and the words about its start."""


class ElsewhereMetric:
    """A network of pyiqa; implements `TrainableMetric`."""

    version = 1

    def __init__(self, network: Network) -> None:
        self._network = network
        self.name, self.needs_reference = network.name, network.needs_reference
        self.description = f"{network.description}; by pyiqa"

    def missing(self) -> str | None:
        """As `TrainableMetric.missing`; whether pyiqa is in that environment turns out when it is asked."""
        try:
            _interpreter()
        except MissingDependencyError as error:
            return f"{self.name} is a network of pyiqa: {error}"
        return None

    def items(self, pair: ImagePair) -> tuple[Item, ...]:
        """Nothing: the network sees other crops of an image in every epoch."""
        return ()

    def cost(self, images: int, epochs: int | None) -> float:
        """As `TrainableMetric.cost`."""
        return images * self._network.image_s * (EPOCHS if epochs is None else epochs)

    def prepare(self, pairs: Sequence[ImagePair], cache: Path, on_progress: OnProgress = unseen) -> None:
        """As `TrainableMetric.prepare`: no file is made; it raises InputError if the network cannot be built there."""
        check_references(self, pairs)
        on_progress(0, 1)
        _reply(self.name, {"do": "build", "network": self._options})
        on_progress(1, 1)

    def train(
        self,
        pairs: Sequence[ImagePair],
        labels: NDArray[np.float64],
        seed: int,
        folder: Path,
        epochs: int | None = None,
        on_progress: OnProgress = unseen,
        cache: Path | None = None,
    ) -> Path:
        """As `TrainableMetric.train`, and raises InfrastructureError if the process of pyiqa fails."""
        labels = checked_labels(self, pairs, labels)
        epochs = check_epochs(self.name, EPOCHS if epochs is None else epochs)
        there = environment()
        card = make_card(self.name, self.version, pairs, labels, seed, epochs, there)
        path = folder / WEIGHTS
        with locked_folder(folder, "training"):
            if path.exists():
                refuse_other_training(folder, read_card(path).text, card.text)
                return path
            scale = Scale.by_range(labels)
            job = self._job("train", pairs) | {
                "folder": str(folder.absolute()),
                "identity": card.text,
                "seed": derive_seed(seed, "weights") % 2**31,
                "epochs": epochs,
                "rate": RATE,
                "targets": self._to_outputs(scale.to_unit(labels)).tolist(),
                **{name: getattr(self._network, name) for name in ("optimizer", "decay", "cosine", "batch")},
                "losses": dict(self._network.losses),
            }
            reply = _reply(self.name, job, on_progress)
            made = folder / pyiqa_trainer.NETWORK
            with np.load(made) as arrays:
                extra = {START: np.array(reply["start"]), LINE: np.array(reply["line"], np.float64)}
                write_weights(path, dict(arrays), scale, card, extra)
            made.unlink()
        return path

    def predict(self, weights: Path, pairs: Sequence[ImagePair], cache: Path | None = None) -> NDArray[np.float64]:
        """As `TrainableMetric.predict`, and raises InfrastructureError if the process of pyiqa fails."""
        check_card(weights, self.name, self.version)
        check_references(self, pairs)
        if not pairs:
            return np.zeros(0)
        reply = _reply(self.name, self._job("predict", pairs) | {"weights": str(weights.absolute())})
        factor, offset = read_extra(weights, LINE)
        outputs = factor * np.array(reply["values"], np.float64) + offset
        worst, best = self._network.outputs
        return read_scale(weights).to_labels((outputs - worst) / (best - worst))

    def start(self, weights: Path) -> str:
        """As `TrainableMetric.start`: which weights of pyiqa and its backbones were there."""
        return str(read_extra(weights, START))

    @property
    def _options(self) -> dict[str, Any]:
        return {"name": self._network.pyiqa or self.name, **self._network.options}

    def _to_outputs(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        worst, best = self._network.outputs
        return worst + (best - worst) * unit

    def _job(self, kind: str, pairs: Sequence[ImagePair]) -> dict[str, Any]:
        network = self._network
        files = [(pair.image, pair.reference) if self.needs_reference else (pair.image,) for pair in pairs]
        return {
            "do": kind,
            "network": self._options,
            "pairs": [[str(file.absolute()) for file in pair if file is not None] for pair in files],
            "crop_px": network.crop_px,
            "least_px": network.least_px,
        }


def environment() -> str:
    """Versions of that environment and its device, such as "2.14.1, pyiqa 0.1.16 on cpu".

    Raises:
        MissingDependencyError: no interpreter is named, or pyiqa is not where it is.
        InfrastructureError: the process failed.
    """
    return _environment(_interpreter())


@lru_cache(maxsize=4)
def _environment(interpreter: str) -> str:
    try:
        found = _reply("pyiqa", {"do": "about"})
    except InputError as error:
        raise MissingDependencyError(f"{error}: {MAKE}") from None
    return f"{found['torch']}, pyiqa {found['pyiqa']} on {found['device']}"


def _interpreter() -> str:
    named = os.environ.get(VARIABLE)
    if not named:
        raise MissingDependencyError(MAKE)
    found = shutil.which(named)
    if found is None:
        raise MissingDependencyError(f"{VARIABLE} is {named!r}, and no program is there; {MAKE}")
    return found


def _reply(name: str, job: Mapping[str, Any], on_progress: OnProgress = unseen) -> dict[str, Any]:
    """The last line of a process that does the job; raises InputError for a reason that a user can mend."""
    # what holds for this interpreter is wrong for the other one
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    kept |= ONE_THREAD | {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            [_interpreter(), pyiqa_trainer.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, text=True, encoding="utf-8", env=kept,
        )  # fmt: skip
        last: dict[str, Any] = {}
        try:
            for last in _lines(process, job):
                if "epoch" in last:
                    on_progress(last["epoch"], last["epochs"])
        finally:
            process.kill()
            process.wait()
        if last.get("refused"):
            raise InputError(f"{name}: {one_line(last['error'], 500)}")
        if "error" in last or not last or "epoch" in last:
            messages.seek(0)
            told = last.get("error") or messages.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise InfrastructureError(
                f"the process of pyiqa that works on {name} failed: {one_line(told or 'it was ended', 500)}; the same "
                "command goes on"
            )
        return last


def _lines(process: subprocess.Popen[str], job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the process says; its input stays open until it is done, and ends with this process."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return
    for line in process.stdout:
        try:
            yield json.loads(line)
        except ValueError:
            return


for _network in NETWORKS.values():
    ELSEWHERE.add(_network.name, ElsewhereMetric(_network))
