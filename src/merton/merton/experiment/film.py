"""The film of a trial, drawn: its undistorted run on the left, the distorted one on the right, on one clock.

Each side shows, from above: the cell as a bystander sees it, with the path of the tool; the picture that the policy
decided on; the answer of the VLM. The layout is that of the first picture of the README.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

import cv2
import numpy as np
from numpy.typing import NDArray

from merton.results.text import one_line
from merton.world.geometry import Array
from merton.world.observation import Image

WIDTH_PX, VIEW_PX, MARGIN_PX = 400, 330, 8
"""Width of a side and height of the bystander's view, each an even number; and the margin around a side."""
RATE_HZ = 10
"""Pictures a second of the film."""
LONGEST_S = 9.0
"""A longer trial is shown faster; the film says how much."""
ENDING_S = 2.0
"""So long its last picture stands, with the outcome."""
ANSWER_LINES, ANSWER_CHARACTERS = 3, 58
PAPER, INK, QUIET = (252, 252, 250), (27, 30, 35), (90, 98, 109)
GOOD, BAD = (36, 112, 63), (168, 50, 60)
OWN, UNDISTORTED = (194, 73, 11), (29, 91, 143)
"""Colours of the paths, as in a report: that of this run, and that of the undistorted run."""


@dataclass(frozen=True)
class Moment:
    """What there is to see at one time.

    Attributes:
        view: the cell, (height, width, 3) uint8 RGB.
        trace: (n, 2) the path of the tool so far, in pixels of `view`.
        seen: the picture that the policy decided on, (height, width, 3) uint8 RGB; None if there is none.
        step: number of the step under way, from 0.
    """

    view: Image
    trace: Array
    seen: Image | None
    step: int


@dataclass(frozen=True)
class FilmSide:
    """One run of the film.

    Attributes:
        title: such as "gaussian blur, level 5".
        moments: at an even rate, `RATE_HZ` / speed.
        answer: of the VLM; empty if it gave none.
        outcome: in words, and whether it is a success.
        trace: (n, 2) the path of the undistorted run, drawn below this one's, in pixels of the view; None for none.
    """

    title: str
    moments: Sequence[Moment]
    answer: str
    outcome: tuple[str, bool]
    trace: Array | None = None


def speed_of(duration_s: float) -> float:
    """How many times faster than it was a trial is shown: 1 for one of up to `LONGEST_S`, then whole or half ones."""
    return max(1.0, np.ceil(2 * duration_s / LONGEST_S) / 2)


def frames(heading: str, sides: Sequence[FilmSide], speed: float, note: str) -> Iterator[Image]:
    """The pictures of a film at `RATE_HZ`; the last one is there for `ENDING_S`.

    Args:
        heading: such as the instruction and the agent.
        sides: one or two; the shorter one waits at its end.
        speed: of the film, against the clock of the trial.
        note: a line below, such as where the pictures come from.

    Yields:
        (height, width, 3) uint8 RGB of one size; both are even numbers, as H.264 asks.
    """
    count = max(len(side.moments) for side in sides)
    ending = round(ENDING_S * RATE_HZ)
    for at in range(count):
        clock_s = at / RATE_HZ * speed
        columns = [_side(side, at, clock_s, speed) for side in sides]
        width = sum(column.shape[1] for column in columns)
        picture = np.vstack(
            [
                _line(heading, INK, 0.6, width, 36, left=MARGIN_PX),
                np.hstack(columns),
                _line(note, QUIET, 0.4, width, 24, left=MARGIN_PX),
            ]
        )
        height = picture.shape[0] // 2 * 2
        yield from [np.ascontiguousarray(picture[:height])] * (1 if at < count - 1 else ending)


def _side(side: FilmSide, at: int, clock_s: float, speed: float) -> Image:
    """A side at one time, with its margin."""
    last = len(side.moments) - 1
    moment, ended = side.moments[min(at, last)], at >= last
    view = moment.view.copy()
    if side.trace is not None:
        _draw_path(view, side.trace, UNDISTORTED)
    _draw_path(view, moment.trace, OWN if side.trace is not None else UNDISTORTED)
    words, is_good = side.outcome if ended else ("", True)
    faster = f", x{speed:g}" if speed != 1 else ""
    steps = f"step {moment.step + 1}, as the agent sees it"
    picture = np.vstack(
        [
            _line(side.title, INK, 0.55, WIDTH_PX, 28, words, GOOD if is_good else BAD),
            view,
            _line(steps, QUIET, 0.45, WIDTH_PX, 24, f"{clock_s:.1f} s{faster}", QUIET),
            _fitted(moment.seen),
            _answer(side.answer),
        ]
    )
    return np.asarray(
        cv2.copyMakeBorder(picture, 0, 0, MARGIN_PX, MARGIN_PX, cv2.BORDER_CONSTANT, value=PAPER), np.uint8
    )


def _draw_path(view: Image, trace: Array, colour: tuple[int, int, int]) -> None:
    """Draw a path into a view, on a light seam, with a dot at its end."""
    points = np.rint(trace).astype(np.int32).reshape(-1, 1, 2)
    if len(points):
        cv2.polylines(view, [points], False, (255, 255, 255), 4, cv2.LINE_AA)
        cv2.polylines(view, [points], False, colour, 2, cv2.LINE_AA)
        cv2.circle(view, points[-1, 0].tolist(), 4, colour, -1, cv2.LINE_AA)


def _fitted(seen: Image | None) -> Image:
    """The picture that the policy saw, in a box of 16 : 9 that is as wide as a side."""
    box = np.full((WIDTH_PX * 9 // 16 // 2 * 2, WIDTH_PX, 3), (238, 239, 235), np.uint8)
    if seen is None:
        return box
    scale = min(box.shape[0] / seen.shape[0], box.shape[1] / seen.shape[1])
    height, width = (max(1, round(scale * length)) for length in seen.shape[:2])
    drawn = cv2.resize(seen, (width, height), interpolation=cv2.INTER_AREA)
    top, left = (box.shape[0] - height) // 2, (box.shape[1] - width) // 2
    box[top : top + height, left : left + width] = drawn
    return box


def _answer(answer: str) -> Image:
    """The answer of the VLM in a few lines; a longer one ends in three dots."""
    lines = wrap(f"VLM: {answer or 'no answer'}", ANSWER_CHARACTERS, max_lines=ANSWER_LINES, placeholder=" ...")
    lines += [""] * (ANSWER_LINES - len(lines))
    return np.vstack([_line(line, INK, 0.42, WIDTH_PX, 20) for line in lines])


def _line(
    text: str,
    colour: tuple[int, int, int],
    scale: float,
    width: int,
    height: int,
    right: str = "",
    right_colour: tuple[int, int, int] = INK,
    left: int = 2,
) -> Image:
    """A line of text of this size [px], made smaller until it fits, with a second text at its right end."""
    paper: NDArray[np.uint8] = np.full((height, width, 3), PAPER, np.uint8)
    font, base = cv2.FONT_HERSHEY_SIMPLEX, round(0.68 * height)
    shown, beside = _plain(text), _plain(right)
    room = width - left - 10 - (cv2.getTextSize(beside, font, scale, 1)[0][0] if beside else 0)
    while scale > 0.3 and cv2.getTextSize(shown, font, scale, 1)[0][0] > room:
        scale -= 0.02
    cv2.putText(paper, shown, (left, base), font, scale, colour, 1, cv2.LINE_AA)
    if beside:
        at = width - cv2.getTextSize(beside, font, scale, 1)[0][0] - 4
        cv2.putText(paper, beside, (at, base), font, scale, right_colour, 1, cv2.LINE_AA)
    return paper


def _plain(text: str) -> str:
    """A text in the letters that OpenCV's font has; every other one is a question mark."""
    return one_line(text, 200).encode("ascii", "replace").decode()
