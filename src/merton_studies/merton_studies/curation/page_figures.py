"""Pictures of a curated benchmark as inline SVG: bars, shares of votes, maps. Everything comes out escaped."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from merton.pages.svg import tag

SIDE = 200.0
"""Width and height of a map in its own units."""


def before_after(assigned: int, kept: int, most: int) -> Markup:
    """A bar as long as the questions of the pool, with the kept ones in it; `most` fills the width."""

    def width(count: int) -> str:
        return f"{100.0 * count / max(most, 1):.2f}%"

    return tag(
        "svg",
        tag("rect", x=0, y=4, width=width(assigned), height=10, class_="before"),
        tag("rect", x=0, y=4, width=width(kept), height=10, class_="after"),
        class_="counts",
        role="img",
        aria_label=f"{assigned} in the pool, {kept} kept",
    )


def vote_shares(shares: Sequence[float], voters: int) -> Markup:
    """Bar chart of the number of questions by the votes for their dimension, out of the number of voters."""
    counts = [0] * (voters + 1)
    for share in shares:
        counts[round(share * voters)] += 1
    width, height = 320.0, 128.0
    step, bottom = width / len(counts), height - 38.0
    parts = [tag("line", x1=0, x2=width, y1=bottom, y2=bottom, class_="grid")]
    for votes, count in enumerate(counts):
        tall = (bottom - 16.0) * count / max(*counts, 1)
        middle = step * (votes + 0.5)
        parts.append(tag("rect", x=step * votes + 4.0, y=bottom - tall, width=step - 8.0, height=tall, class_="after"))
        parts.append(tag("text", count, x=middle, y=bottom - tall - 4.0, text_anchor="middle"))
        parts.append(tag("text", f"{votes} of {voters}", x=middle, y=bottom + 14.0, text_anchor="middle"))
    parts.append(tag("text", "votes for the dimension", x=width / 2, y=height - 3.0, text_anchor="middle"))
    told = ", ".join(f"{count} questions with {votes}" for votes, count in enumerate(counts) if count)
    label = f"Votes for the chosen dimension, of {voters}: {told}"
    return tag("svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img", aria_label=label)


def map_of(points: Sequence[tuple[float, float]], kept: Sequence[bool], title: str) -> Markup:
    """A map of questions, the kept ones marked; both axes have one scale, so that distances can be compared.

    Args:
        points: x and y of each question, in any unit.
        kept: whether it is.
        title: for screen readers.
    """
    xs, ys = [x for x, _ in points], [y for _, y in points]
    span = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    room = SIDE - 10.0

    def at(point: tuple[float, float]) -> str:
        x, y = ((value - center) / span * room + SIDE / 2 for value, center in zip(point, middle, strict=True))
        return f"M{x:.1f} {SIDE - y:.1f}h0"

    def dots(marked: bool) -> Markup:
        drawn = "".join(at(point) for point, one in zip(points, kept, strict=True) if one is marked)
        return tag("path", d=drawn, class_="kept" if marked else "dropped")

    return tag(
        "svg", dots(False), dots(True), viewBox=f"0 0 {SIDE:g} {SIDE:g}", class_="map", role="img", aria_label=title
    )
