"""Simulated attributions whose truth is known: how often the intervals of loss and shares hold it.

    .venv/bin/python tools/studies/attribution_coverage.py [--studies 150] [--only 0 4]

Each planted policy does the task by a coin whose chance depends on the scene and on which of two parts, A and B, are
distorted. With "new" every other picture is another throw of the coin; with "one" all designs share the throw, as those
of a deterministic policy do. A line has the truth and the mean in points of 100, the share of studies whose 95 %
interval holds the truth, and the share whose lower end is above 0 where nothing is lost: by the earlier rule (losing
trials alone, gains counted as 0), and by `merton.study.attribution`. A part that "does not look" holds a truth of 0.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from merton.results.records import Outcome, TestCase, TrialRecord
from merton.seeding import generator
from merton.statistics.intervals import Interval
from merton.statistics.means import mean_interval
from merton.study.attribution import attribute, shapley
from merton.study.rerun_sample import Pair, Rerun, rerun_weights

SUBSETS = {"A": frozenset("A"), "B": frozenset("B"), "AB": frozenset("AB")}
DESIGNS = {some: name for name, some in SUBSETS.items()}
MANY = 20_000
"""Scenes of the truth."""
PARTS = ("loss", "A", "B")
Effects = tuple[float, float, float]


@dataclass(frozen=True)
class World:
    """A planted policy and a design.

    Attributes:
        chance: "new" or "one" throw.
        usual: chance of success undistorted in the middle scene.
        effects: by which A, B and both lower the logit of success.
        scenes, tasks, kinds: an undistorted trial in every scene and task, and so many distorted ones of it.
        spread: standard deviation of the logit over scenes.
        rare: share of scenes in which the effects hold; elsewhere nothing has one.
    """

    name: str
    chance: str
    usual: float
    effects: Effects
    scenes: int = 12
    tasks: int = 2
    kinds: int = 4
    spread: float = 0.8
    rare: float = 1.0


WORLDS = (
    World("no effect", "new", 0.8, (0, 0, 0)),
    World("no effect", "new", 0.8, (0, 0, 0), scenes=100, tasks=1, kinds=6),
    World("only A hurts", "new", 0.8, (1.6, 0, 1.6)),
    World("only B acts, A unseen", "one", 0.8, (0, 1.6, 1.6)),
    World("A alone fails a third, A and B do not", "one", 0.97, (2.8, 0, 0.9)),
    World("no effect, six scenes", "new", 0.5, (0, 0, 0), scenes=6),
    World("no effect, at the ceiling", "new", 0.95, (0, 0, 0), scenes=30, tasks=1, kinds=6),
    World("A helps", "new", 0.4, (-0.9, 0, -0.9)),
    World("A hurts as much as B helps", "new", 0.6, (1.5, -1.5, 0)),
    World("either part is enough", "one", 0.85, (2.5, 2.5, 2.5)),
    World("both parts are needed", "new", 0.85, (0, 0, 2.5)),
    World("A loses all in a tenth of the scenes", "one", 0.97, (9, 0, 9), scenes=30, tasks=1, kinds=6, rare=0.1),
    World("near the floor", "new", 0.06, (1.2, 0, 1.2)),
    World("A hurts a little, 30 kinds", "new", 0.8, (0.4, 0, 0.4), tasks=1, kinds=30),
    World("A and B each fail some, both do not", "one", 0.9, (2.5, 0.8, 0), scenes=30, tasks=1, kinds=6),
)
"""The first five are those of the review, the others of our own."""


def outcomes(world: World, scenes: int, rng: np.random.Generator) -> dict[str, NDArray[np.bool_]]:
    """Success (scenes, tasks, kinds) by the parts distorted, "" for none, and with the placebo, "+" and "AB+"."""
    shape = (scenes, world.tasks, world.kinds)
    middle = math.log(world.usual / (1.0 - world.usual)) + world.spread * rng.standard_normal((scenes, 1, 1))
    holds = rng.random((scenes, 1, 1)) < world.rare
    severity = np.linspace(0.6, 1.4, world.kinds)
    throw = rng.random((scenes, world.tasks, 1))
    lower = {"": 0.0, "+": 0.0, "AB+": world.effects[2]} | dict(zip(SUBSETS, world.effects, strict=True))
    found = {}
    for name, effect in lower.items():
        size = (*shape[:2], 1) if name in ("", "+") else shape
        coin = rng.random(size) if world.chance == "new" else throw
        found[name] = np.broadcast_to(coin < 1.0 / (1.0 + np.exp(-(middle - effect * severity * holds))), shape)
        if name in ("", "+"):
            found[name] = np.broadcast_to(found[name][..., :1], shape)
    return found


def truth(world: World) -> dict[str, float]:
    """The mean loss and shares of endlessly many scenes."""
    found = outcomes(world, MANY, generator("truth of attribution", world.name))
    losses = {some: float(found[""].mean() - found[name].mean()) for name, some in SUBSETS.items()}
    return {"loss": losses[SUBSETS["AB"]], **shapley("AB", losses)}


def study(world: World, number: int) -> tuple[list[Pair], dict[str, Rerun]]:
    """All pairs of a study, and each of them run again, by id, with a weight of 1."""
    rng = generator("attribution", world.name, world.scenes, number)
    found, pairs, reruns = outcomes(world, world.scenes, rng), [], {}
    for scene, task, kind in np.ndindex(world.scenes, world.tasks, world.kinds):
        ways = {name: float(rng.random()) for name in found} if world.chance == "new" else _ways(world, kind)

        def record(
            name: str, case: TestCase, at: tuple[int, ...] = (scene, task, kind), ways: Mapping[str, float] = ways
        ) -> TrialRecord:
            won = bool(found[name][at])
            outcome = Outcome.SUCCESS if won else Outcome.FAILURE
            return TrialRecord("s", "a", case, outcome, progress=float(won), simulated_s=ways[name])

        case = TestCase(f"test-{('pick', 'push')[task]}", scene, f"kind{kind}", 5)
        pair = Pair(record("", case.reference), record("AB", case))
        placebo = record("+", case.reference), record("AB+", case)
        pairs.append(pair)
        reruns[pair.after.id] = Rerun(pair, {name: record(name, case) for name in ("A", "B")}, 1.0, placebo)
    return pairs, reruns


def _ways(world: World, kind: int) -> dict[str, float]:
    """The way of a deterministic policy: another one for each picture that it sees otherwise."""
    a, b, both = world.effects
    ways = {"": 0.0, "A": a, "B": b, "AB": both, "+": 0.0, "AB+": both}
    return {name: way * (1 + kind) for name, way in ways.items()}


Result = dict[str, tuple[float, Interval | None]]


def earlier(pairs: Sequence[Pair], reruns: Mapping[str, Rerun]) -> Result:
    """Losing trials alone are run again; of all others loss and shares are 0."""
    rows = []
    for pair in pairs:
        row = dict.fromkeys(PARTS, 0.0)
        if pair.loses:
            found = {**reruns[pair.after.id].found, "AB": pair.after}
            losses = {some: pair.loss("success", found[name]) or 0.0 for name, some in SUBSETS.items()}
            row = {"loss": losses[SUBSETS["AB"]], **shapley("AB", losses)}
        rows.append(row)
    scenes = [pair.after.case.scene for pair in pairs]
    return {
        part: (
            math.fsum(row[part] for row in rows) / len(rows),
            mean_interval([(1.0 + row[part]) / 2.0 for row in rows], scenes).scaled(2.0, -1.0),
        )
        for part in PARTS
    }


def today(pairs: Sequence[Pair], reruns: Mapping[str, Rerun], seed: int) -> tuple[Result, float, float]:
    """Loss, shares and chance; the share of trials that are run again; the largest miss of shares from the loss."""
    weights = rerun_weights(pairs, seed)
    sample = [Rerun(reruns[id].pair, reruns[id].found, w, reruns[id].placebo) for id, w in weights.items()]
    found = attribute("a", "cameras", "AB", DESIGNS, pairs, sample)[0]
    means = {"loss": found.loss, **found.shares, "chance": found.chance}
    miss = abs(math.fsum(share.value for share in found.shares.values()) - found.loss.value)
    return {name: (one.value, one.interval) for name, one in means.items() if one}, len(sample) / len(pairs), miss


def holds(true: float, ends: Interval | None) -> bool:
    """Whether an interval has the truth; "does not look" has 0 alone."""
    return true == 0.0 if ends is None else ends.low - 1e-9 <= true <= ends.high + 1e-9


def line(world: World, studies: int) -> str:
    """The row of a world."""
    true = {**truth(world), "chance": 0.0}
    true = {part: 0.0 if abs(value) < 0.004 else value for part, value in true.items()}
    then, now, sizes, misses = [], [], [], []
    for number in range(studies):
        pairs, reruns = study(world, number)
        then.append(earlier(pairs, reruns))
        found, size, miss = today(pairs, reruns, number)
        now.append(found)
        sizes.append(size)
        misses.append(miss)
    assert max(misses) < 1e-9, "shares add up to the loss"
    cells = [", ".join(f"{100 * true[part]:.1f}" for part in PARTS)]
    for results in (then, now):
        cells.append(", ".join(f"{100 * np.mean([one[part][0] for one in results]):.1f}" for part in PARTS))
        cells.append(" ".join(f"{np.mean([holds(true[part], one[part][1]) for one in results]):.2f}" for part in PARTS))
        cells.append(
            " ".join(
                f"{np.mean([(one[part][1] or (0, 0))[0] > 0 for one in results]):.2f}" if true[part] <= 0.0 else "–"
                for part in PARTS
            )
        )
    ends = [one["chance"][1] for one in now]
    cells.append(f"{np.mean([holds(0.0, one) for one in ends]):.2f}")
    cells.append(f"{np.mean(sizes):.2f}")
    name = f"{world.name} ({world.chance}), {world.scenes} x {world.tasks * world.kinds}"
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--studies", type=int, default=150)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of worlds, from 0")
    given = parser.parse_args()
    heads = ["earlier rule: mean", "held", "above 0", "now: mean", "held", "above 0", "chance held", "run again"]
    print(f"| policy | truth: {', '.join(PARTS)} | {' | '.join(heads)} |\n{'|---' * (len(heads) + 2)}|")
    for number in range(len(WORLDS)) if given.only is None else given.only:
        print(line(WORLDS[number], given.studies), flush=True)


if __name__ == "__main__":
    main()
