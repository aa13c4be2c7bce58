"""The folder of a dataset while it is made, and the columns of its episodes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from merton.errors import InputError
from merton.files import claim_folder, locked_folder
from merton.results.records import TrialRecord
from merton_studies.lerobot.layout import INFO
from merton_studies.release.lerobot.dataset import Counts, Facts
from merton_studies.release.lerobot.demonstration import is_kept

PARTS = ".demonstrations"
"""Folder of the demonstrations until the dataset is put together from them."""
ASKED = ".demonstrations.json"
"""File with the settings of an unfinished dataset."""


@dataclass(frozen=True)
class Exported:
    """A dataset that was written.

    Attributes:
        left_out: a sentence for each trial that was.
        lag_s: how far a picture lags behind its frame, at most [s].
        torn: where the recording breaks off, in one sentence; empty if it does not.
    """

    counts: Counts
    left_out: tuple[str, ...]
    lag_s: float = 0.0
    torn: str = ""


@contextmanager
def begun(out: Path, asked: Mapping[str, Any]) -> Iterator[Path]:
    """The folder for demonstrations in `out`, which is removed at the end of the block.

    If the block raises, the folder stays with the demonstrations that are whole, for a further call; without any,
    nothing stays.

    Raises:
        InputError: `out` holds a dataset or something else, work that was begun otherwise, or another process.
        InfrastructureError: it cannot be written.
    """
    with locked_folder(out, "merton export lerobot"):
        if (out / INFO).exists():
            raise InputError(f"{out} holds a dataset; choose a new folder")
        parts, settings = out / PARTS, out / ASKED
        claim_folder(settings, asked, "an unfinished dataset")
        parts.mkdir(exist_ok=True)
        try:
            yield parts
        except BaseException:
            if not any(is_kept(part) for part in parts.iterdir()):
                _remove(parts, settings)
                with suppress(OSError):  # it was there before, or is in use
                    out.rmdir()
            raise
        _remove(parts, settings)


def _remove(parts: Path, settings: Path) -> None:
    shutil.rmtree(parts)
    settings.unlink()


def facts_of(record: TrialRecord) -> Facts:
    """The columns of a trial's episode, as in the record (docs/use/results.md); `scene` is the sampling unit."""
    case = record.case
    return {
        "trial": record.id,
        "run": record.experiment,
        "agent": record.agent,
        "scene": case.scene,
        "task_name": case.task,
        "seed": case.seed,
        "distortion": case.distortion,
        "level": case.level,
        "outcome": record.outcome.value,
        "success": bool(record.success),
        "cognition": record.cognition,
        "decision": record.decision,
        "execution": record.execution,
        "progress": record.progress,
    }
