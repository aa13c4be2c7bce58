"""Demonstrations from an MCAP recording: what cameras, arm and gripper did, on the lab's robot too."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from merton import __version__
from merton.errors import InputError, require
from merton.perception.camera.decoding import file_of
from merton.perception.images import decode_image
from merton.progress import OnProgress, unseen
from merton.recording.messages import header_ns, namespace_of, picture_topics, reading
from merton.recording.reader import RecordingReader, recording_sha256
from merton.results.parquet import require_pyarrow
from merton.world.cell import load_cell
from merton.world.geometry import Array
from merton.world.observation import Image
from merton_studies.release.lerobot.dataset import Facts, put_together
from merton_studies.release.lerobot.demonstration import convention_of_export, is_kept, keep, ticks, vectors_of
from merton_studies.release.lerobot.folder import Exported, begun, facts_of
from merton_studies.release.lerobot.pictures import ALL_PICTURES, PictureChoice
from merton_studies.release.lerobot.timeline import IMAGES, Shown, Timeline

_Taken = list[tuple[int, bytes]]
"""Pictures of a camera: stamp [ns] and PNG or JPEG."""
EARLIER_NS = 30_000_000_000
"""A picture that is older than this at the beginning of a trial is not shown in it [ns]."""


def export(
    recording: Path,
    out: Path,
    fps: int | None,
    successful: bool,
    on_progress: OnProgress = unseen,
    choice: PictureChoice = ALL_PICTURES,
) -> Exported:
    """Write the trials of a recording as a dataset of LeRobot; goes on where it was interrupted.

    A frame shows each camera's last picture up to its time: the distorted copy, which the policy saw, where the
    recording has it. The arm's states are interpolated between those that were recorded.

    Args:
        recording: of recorder_node: a file, or the folder of a bag.
        out: a new or empty folder, or one in which the same call was interrupted.
        fps: frames a second, 1 .. 200; None: as many as a camera delivers.
        successful: successes alone.
        on_progress: called with trials done and all.
        choice: cameras and size of the pictures.

    Raises:
        InputError: no recording, `out` holds something else, no such rate or camera, or there is no trial with its
            result, pictures and motion.
        InfrastructureError: a file cannot be written.
        MissingDependencyError: PyAV, pyarrow or the extra `recording` is not installed.
    """
    require("av", "people", "writing videos")
    require_pyarrow()
    if fps is not None and not 1 <= fps <= 200:
        raise InputError(f"a dataset has 1 to 200 frames a second, got {fps}")
    timeline = Timeline(recording)
    if timeline.rate_hz is None:
        raise InputError(f"{recording} has no pictures of a color camera")
    rate = fps or timeline.rate_hz
    wanted = [trial for trial in timeline.trials if trial.record.success or not successful]
    asked = {"source": recording.name, "recording_sha256": recording_sha256(recording), "fps": rate,
             "successful": successful, **choice.asked()}  # fmt: skip
    cell = load_cell(linkage=timeline.linkage)
    with begun(out, asked) as parts:
        left_out, made = list(timeline.left_out), list[tuple[Path, Facts]]()
        cameras: set[str] = set()
        for number, (trial, taken) in enumerate(_with_pictures(recording, wanted)):
            on_progress(number, len(wanted))
            taken = {camera: taken[camera] for camera in choice.of(tuple(sorted(taken)))} if taken else taken
            cameras = cameras or set(taken)
            if not taken or set(taken) != cameras:
                missing = ", ".join(sorted(cameras - set(taken))) or "every camera"
                left_out.append(f"{trial.record.id}: there are no pictures of {missing}")
                continue
            folder = parts / str(number)
            frames = np.arange(ticks((trial.end_ns - trial.start_ns) / 1e9, rate))
            times = np.minimum(trial.start_ns + frames * (1e9 / rate), trial.end_ns)  # then the next scene begins
            if not is_kept(folder):
                vectors = vectors_of(*timeline.at(times), cell)
                pictures = {one: choice.sized(_shown(taken[one], times)) for one in sorted(taken)}
                keep(folder, trial.instruction, vectors, pictures, rate)
            made.append((folder, {**facts_of(trial.record), "oldest_picture_s": _oldest_s(taken, times)}))
        if not made:
            reason = left_out[0] if left_out else f"no trial of it is a success among {len(timeline.trials)}"
            broken = f" ({timeline.torn})" if timeline.torn else ""
            raise InputError(f"{recording} cannot be exported: {reason}{broken}")
        provenance = {
            **asked, "merton": __version__, "robot": cell.robot.model, "left_out": left_out,
            **({"breaks_off": timeline.torn.replace(str(recording), recording.name)} if timeline.torn else {}),
            "pictures": "the last picture of each camera up to the frame's time, as the policy saw it: through the "
            "distortion of the trial. A lab's recording has them as JPEG of quality 92 unless it was asked for PNG",
            "limits": "`oldest_picture_s` of an episode is how far a picture lags behind its frame at most. Pictures "
            "of a lab show all that stood before its cameras: look at them before you publish them.",
        }  # fmt: skip
        convention = convention_of_export(cell, cell.robot.model, rate, recording.name)
        counts = put_together(out, made, convention, provenance)
    return Exported(counts, tuple(left_out), max(facts["oldest_picture_s"] for _, facts in made), timeline.torn)


def _with_pictures(recording: Path, trials: list[Shown]) -> Iterator[tuple[Shown, dict[str, _Taken]]]:
    """Each trial with its pictures by camera; those of one trial are in memory at a time."""
    waiting, taken = sorted(trials, key=lambda trial: trial.start_ns), dict[str, _Taken]()
    distorted: set[str] = set()
    reader = RecordingReader(recording)
    namespace = namespace_of(reader.topics(), recording)
    pictures = picture_topics(reader.topics(), namespace, IMAGES)
    for entry in reader.entries(pictures):
        match = pictures[entry.topic]
        with reading(entry):
            message = entry.decode()
            stamp, camera, content = header_ns(message), match[1] or match[3], file_of(message)
        while waiting and stamp > waiting[0].end_ns + EARLIER_NS // 30:
            trial = waiting.pop(0)
            yield trial, _within(taken, trial)
        if not waiting:
            return
        if match[2] and camera not in distorted:
            distorted.add(camera)
            taken.pop(camera, None)
        if (camera in distorted) == bool(match[2]) and stamp > waiting[0].start_ns - EARLIER_NS:
            taken.setdefault(camera, []).append((stamp, content))
        for kept in taken.values():
            while len(kept) > 1 and kept[1][0] <= waiting[0].start_ns:
                kept.pop(0)
    for trial in waiting:
        yield trial, _within(taken, trial)


def _within(taken: dict[str, _Taken], trial: Shown) -> dict[str, _Taken]:
    """The pictures of a trial, from the last one before it to its end."""
    found = {}
    for camera, pictures in taken.items():
        stamps = [stamp for stamp, _ in pictures]
        own = pictures[max(bisect_right(stamps, trial.start_ns) - 1, 0) : bisect_right(stamps, trial.end_ns)]
        if own:
            found[camera] = own
    return found


def _shown(pictures: _Taken, times_ns: Array) -> Iterator[Image]:
    """The last picture up to each time; the first one before it was taken."""
    stamps, last, image = [stamp for stamp, _ in pictures], -1, None
    for time_ns in times_ns:
        index = max(bisect_right(stamps, time_ns) - 1, 0)
        if image is None or index != last:
            image, last = decode_image(pictures[index][1]), index
        yield image


def _oldest_s(taken: dict[str, _Taken], times_ns: Array) -> float:
    """The longest time by which a picture lags behind its frame [s]."""
    lags = [0.0]
    for pictures in taken.values():
        stamps = np.array([stamp for stamp, _ in pictures])
        index = np.maximum(np.searchsorted(stamps, times_ns, side="right") - 1, 0)
        lags.append(float((times_ns - stamps[index]).max()) / 1e9)
    return round(max(lags), 3)
