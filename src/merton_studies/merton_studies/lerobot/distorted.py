"""A distorted copy of a dataset, of the same format and version: for training with augmentation.

Videos are encoded anew with the codec, pixel format and times of the originals; files without a distorted picture are
copied as they are. A file is written whole or not at all and noted as done when it was read back, and meta/info.json
comes last: a loader finds all or nothing, and a call that was killed is finished by the same one.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from merton import __version__
from merton.errors import InputError
from merton.files import UNFINISHED, claim_folder, file_sha256, write_file, written_whole
from merton.perception.dataset.settings import code_sha256, versions
from merton.perception.distortion.setting import Setting
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.results.csv_writer import write_csv
from merton_studies.lerobot import layout
from merton_studies.lerobot.card import with_section
from merton_studies.lerobot.conditions import Plan, dealt
from merton_studies.lerobot.folder import Episode, LeRobotFolder, dataset_sha256, files_in, read_json
from merton_studies.lerobot.rewriting import Done, Work, rewritten
from merton_studies.lerobot.summaries import renew_statistics

PROVENANCE, CONDITIONS = Path("meta", "merton.json"), Path("meta", "merton_episodes.csv")
BEGUN, NOTES = ".distorting.json", ".distorting"
"""Of an unfinished copy: its settings, and the folder with a note for each file that is done."""


@dataclass(frozen=True)
class DistortedCopy:
    """A copy that is complete.

    Attributes:
        conditions: of each episode.
        reused: files that an earlier call had made.
        files: that have distorted pictures.
        psnr_db: the least likeness of a distorted picture to the one that is read back from its video [dB], for each
            setting that is in videos.
    """

    conditions: Mapping[int, Setting]
    reused: int
    files: int
    psnr_db: Mapping[Setting, float]


def distort_dataset(
    source: Path,
    out: Path,
    plan: Plan,
    *,
    cameras: Collection[str] | None = None,
    workers: int | None = None,
    on_progress: OnProgress = unseen,
) -> DistortedCopy:
    """Write a distorted copy of a dataset, or finish one that was interrupted.

    Args:
        source: the dataset.
        out: new, empty, or an unfinished copy of the same dataset by the same plan.
        plan: the conditions.
        cameras: keys of those that are distorted; None for all of colour.
        workers: processes; None: one for each core that this process may use.

    Raises:
        InputError: no dataset, a fault in it, no such camera, a codec that cannot be written, or an `out` with other
            content.
        InfrastructureError: `out` cannot be written, or a worker was killed; the same call goes on.
        MissingDependencyError: PyAV or pyarrow is not installed.
    """
    folder = LeRobotFolder(source)
    keys = tuple(key for key in folder.cameras if cameras is None or key in cameras)
    if not keys:
        raise InputError(f"{source} has no colour pictures")
    if out.resolve().is_relative_to(source.resolve()) or source.resolve().is_relative_to(out.resolve()):
        raise InputError(f"{out} and {source} lie in each other: choose another folder")
    if layout.is_dataset(out):
        raise InputError(f"{out} holds a dataset; choose a new folder")
    conditions, earlier = dealt(folder.episodes, plan), _provenance(source)
    about = _about(folder, keys, plan)
    with resumable_work(out, "merton distort dataset"):
        claim_folder(out / BEGUN, about, "a distorted copy of a dataset")
        for draft in list(out.rglob(f"*{UNFINISHED}")):
            draft.unlink()
        works = _works(folder, keys, conditions, plan)
        done, reused = _carried_out(works, out, workers, on_progress)
        _copy_rest(source, out, {work.file for work in works})
        renew_statistics(folder, out, keys, done)
        copy = DistortedCopy(
            conditions, reused, sum(work.is_distorted for work in works), _least_psnr(done, conditions)
        )
        _write_provenance(folder, out, copy, {**about, "provenance_of_source": earlier}, works)
        shutil.rmtree(out / NOTES, ignore_errors=True)
        write_file(out / layout.INFO, _info(folder, keys, conditions))
        (out / BEGUN).unlink()
    return copy


def _about(folder: LeRobotFolder, keys: Collection[str], plan: Plan) -> dict[str, Any]:
    """All that the copy depends on, as JSON values."""
    part = plan.part
    return {
        "merton": __version__,
        "source": folder.path.resolve().name,
        "source_sha256": dataset_sha256(folder.path),
        "format": folder.version,
        "distortions": [setting.name for setting in plan.settings],
        "levels": "one" if plan.one_level else "as named",
        "clean_share": plan.clean_share,
        "seed": plan.seed,
        "cameras": list(keys),
        "steps": None if part.steps is None else str(part.steps),
        "versions": dict(versions()),
        "code_sha256": code_sha256(),
    }


def _works(folder: LeRobotFolder, keys: Collection[str], conditions: Mapping[int, Setting], plan: Plan) -> list[Work]:
    """A piece of work for each file with pictures of the chosen cameras; the longest first."""
    files: dict[tuple[Path, str], list[Episode]] = {}
    for episode in folder.episodes:
        for key in keys:
            of_table = not folder.cameras[key].is_video
            place = (episode.data, "") if of_table else (episode.videos[key][0], key)
            if (there := files.setdefault(place, []))[-1:] != [episode]:  # once for all of its cameras
                there.append(episode)
    stored = tuple(key for key in keys if not folder.cameras[key].is_video)
    works = [
        Work(
            folder.path, file, (key,) if key else stored, bool(key),
            tuple((episode.index, conditions[episode.index]) for episode in episodes), plan.seed, plan.part,
        )
        for (file, key), episodes in files.items()
    ]  # fmt: skip
    return sorted(works, key=lambda work: (-len(work.episodes), work.file))


def _carried_out(works: list[Work], out: Path, workers: int | None, on_progress: OnProgress) -> tuple[list[Done], int]:
    notes = out / NOTES
    notes.mkdir(exist_ok=True)
    done = {index: found for index, work in enumerate(works) if (found := _noted(notes / f"{index}.npz", work, out))}
    reused, left = len(done), [index for index in range(len(works)) if index not in done]
    on_progress(reused, len(works))
    for place, made in carried_out(rewritten, [(works[index], out) for index in left], workers):
        done[left[place]] = made
        with written_whole(notes / f"{left[place]}.npz") as file:
            np.savez(file, sha256=np.array(made.sha256), **_packed(made))  # type: ignore[arg-type]
        on_progress(len(done), len(works))
    return [done[index] for index in range(len(works))], reused


def _packed(done: Done) -> dict[str, NDArray[Any]]:
    shades = {f"shades {episode} {key}": values for (episode, key), values in done.shades.items()}
    return shades | {f"psnr {episode} {key}": np.array(value) for (episode, key), value in done.psnr_db.items()}


def _noted(note: Path, work: Work, out: Path) -> Done | None:
    """The note of a file that is done; None if it is not, or is not as it was noted."""
    if not note.is_file() or not (out / work.file).is_file():
        return None
    with np.load(note) as arrays:
        if str(arrays["sha256"]) != file_sha256(out / work.file):
            return None
        found: dict[str, dict[tuple[int, str], Any]] = {"shades": {}, "psnr": {}}
        for name in arrays.files:
            kind, _, place = name.partition(" ")
            if kind in found:
                episode, _, key = place.partition(" ")
                found[kind][int(episode), key] = arrays[name] if kind == "shades" else float(arrays[name])
        return Done(str(arrays["sha256"]), found["shades"], found["psnr"])


def _copy_rest(source: Path, out: Path, made: Collection[Path]) -> None:
    """Every other file as it is, without hidden ones and info.json, which comes last."""
    for file in files_in(source):
        inside = file.relative_to(source)
        hidden = any(part.startswith(".") for part in inside.parts)
        if hidden or inside in made or inside == layout.INFO:
            continue
        (out / inside).parent.mkdir(parents=True, exist_ok=True)
        with written_whole(out / inside, durable=False) as target, file.open("rb") as content:
            shutil.copyfileobj(content, target)


def _least_psnr(done: Collection[Done], conditions: Mapping[int, Setting]) -> dict[Setting, float]:
    least: dict[Setting, float] = {}
    for one in done:
        for (episode, _), psnr_db in one.psnr_db.items():
            setting = conditions[episode]
            least[setting] = min(psnr_db, least.get(setting, np.inf))
    return dict(sorted(least.items()))


def _provenance(source: Path) -> dict[str, Any] | None:
    """That of a source which is a copy itself."""
    return read_json(source / PROVENANCE) if (source / PROVENANCE).is_file() else None


def _write_provenance(
    folder: LeRobotFolder, out: Path, copy: DistortedCopy, about: Mapping[str, Any], works: Collection[Work]
) -> None:
    """The conditions, the provenance, and the card."""
    rows = [
        (episode.index, " / ".join(episode.tasks), setting.distortion, setting.level, episode.length)
        for episode in folder.episodes
        for setting in [copy.conditions[episode.index]]
    ]
    write_csv(out / CONDITIONS, ("episode", "task", "distortion", "level", "frames"), rows)
    counts = Counter(setting.name for setting in copy.conditions.values())
    provenance = {
        "made_by": "merton distort dataset",
        **about,
        "episodes": dict(sorted(counts.items())),
        "psnr_db_least": {setting.name: round(value, 2) for setting, value in copy.psnr_db.items()},
        "sha256": {file.as_posix(): file_sha256(out / file) for file in sorted(work.file for work in works)},
    }
    write_file(out / PROVENANCE, f"{json.dumps(provenance, indent=2)}\n".encode())
    card = folder.path / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    write_file(out / "README.md", with_section(text, about, counts, copy.psnr_db).encode())


def _info(folder: LeRobotFolder, keys: Collection[str], conditions: Mapping[int, Setting]) -> bytes:
    """info.json; what it says of the encoder's settings is left out where videos were encoded anew."""
    info = json.loads((folder.path / layout.INFO).read_text(encoding="utf-8"))
    if any(setting.level for setting in conditions.values()):
        for key in keys:
            for name in ("info", "video_info"):
                about = info["features"][key].get(name)
                for setting in ("video.crf", "video.preset", "video.g") if about else ():
                    about.pop(setting, None)
    return f"{json.dumps(info, indent=4)}\n".encode()
