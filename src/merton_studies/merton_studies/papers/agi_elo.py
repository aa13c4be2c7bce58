"""The numbers that AGI-Elo prints (arXiv 2505.12844), recomputed from each other with Merton's own predictions.

Tables 1 and 2 and the numbers of the text, in `config/published/agi_elo.csv`. The ratings themselves cannot be
recomputed: the matches behind them are not part of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator

from merton.rating.predictions import gap, oracle, predicted_score
from merton_studies.opinions.published import Claim
from merton_studies.papers.facts import Cells, Recomputed, rows

SHARES = {"gap @50%": 0.5, "gap @90%": 0.9, "gap @99%": 0.99}
HALF_DIGIT = 0.05
"""Ratings are printed to a tenth of a point, so a difference of two may be off by twice this."""
COCO_EMPTY = 48
"""Images without an annotation among the 5,000 of COCO's validation split of 2017."""
BUCKETS = (
    "straight", "straight-left", "straight-right", "left", "right", "left u-turn", "right u-turn", "stationary",
)  # fmt: skip
"""Section B.5.2."""


def recompute(cells: Cells) -> Iterator[Recomputed]:
    """Every number that follows from others."""
    for dataset in rows(cells, "1"):
        hardest, agent = cells["1", dataset, "hardest case"], cells["1", dataset, "best agent"]
        score = predicted_score(agent, hardest)
        yield Recomputed(("1", dataset, "predicted score"), score, "1 / (1 + 10^((hardest - agent) / 400))", slack=1e-4)
        for column, share in SHARES.items():
            value = gap(agent, hardest, share)
            how = f"hardest + 400 log10({share:g} / {1 - share:.2g}) - agent"
            yield Recomputed(("1", dataset, column), value, how, slack=2 * HALF_DIGIT)
    yield Recomputed(
        ("1", "COCO", "largest IoU"), cells["text", "B.2.2", "largest IoU of the AP"], "as in section B.2.2"
    )
    yield from _table_2(cells)
    yield from _text(cells)
    yield from _appendix(cells)


def claims(cells: Cells) -> tuple[Claim, ...]:
    """Claims judged by the numbers: ours about Table 2, and the paper's about its human agent."""
    pairs = {name: (cells["2", name, "MAE"], cells["2", name, "MSE"]) for name in rows(cells, "2")}
    square = [f"{name} {mse / mae**2:.2f}" for name, (mae, mse) in pairs.items()]
    human = cells["1", "NAVSIM", "hardest case"] - cells["text", "4.2", "gap @50% of the human on NAVSIM"]
    score = predicted_score(human, cells["1", "NAVSIM", "hardest case"])
    best = cells["1", "NAVSIM", "predicted score"]
    return (
        Claim(
            "No MSE of Table 2 is below the square of its MAE",
            f"MSE by MAE squared: {', '.join(square)}",
            "noted" if all(mse >= mae**2 for mae, mse in pairs.values()) else "does not hold",
        ),
        Claim(
            "The human agent is approaching the performance of an ideal oracle",
            f"20.7 points below the oracle at 50 % are a score of {score:.3f} on the hardest case; the best model "
            f"scores {best:.3f}, and the oracle at 90 % is "
            f"{oracle(human, 0.9) - human:.1f} + 20.7 points away",
            "holds in part" if best < score < 0.5 else "does not hold",
        ),
    )


def _table_2(cells: Cells) -> Iterator[Recomputed]:
    for dataset in rows(cells, "2"):
        cases, agents = cells["2", dataset, "cases"], cells["2", dataset, "agents"]
        yield Recomputed(("2", dataset, "matches"), cases * agents, "cases x agents")
        yield Recomputed(("2", dataset, "cases"), cells["2", dataset, "matches"] / agents, "matches / agents")
        printed, n = cells["2", dataset, "rho of the agents"], int(agents)
        swaps = round((1 - printed) * n * (n * n - 1) / 12)
        yield Recomputed(
            ("2", dataset, "rho of the agents"),
            1 - 12 * swaps / (n * (n * n - 1)),
            f"the value nearest to it that {n} agents can have: the squared differences of ranks add to {2 * swaps}",
            read=True,
        )


def _text(cells: Cells) -> Iterator[Recomputed]:
    """Sections 1.2 and 4.2."""
    best, older = cells["1", "ImageNet", "best agent"], cells["text", "4.2", "rating of AlexNet"]
    agents = [cells["2", name, "agents"] for name in rows(cells, "2")]
    gaps = {share: [cells["1", name, f"gap @{share}%"] for name in rows(cells, "1")] for share in (50, 99)}
    beaten = {name: cells["text", "4.2", f"cases beaten by {name}, %"] for name in ("ConvNeXt-Large", "AlexNet")}
    human = cells["1", "NAVSIM", "hardest case"] - cells["text", "4.2", "gap @50% of the human on NAVSIM"]
    for section, column, value, how in (
        ("1.2", "datasets", len(agents), "rows of Table 1"),
        ("1.2", "fewest agents", min(agents), "Table 2"),
        ("1.2", "most agents", max(agents), "Table 2"),
        ("4.2", "rating of ConvNeXt-Large", best, "Table 1"),
        ("4.2", "points gained on ImageNet", best - older, "ConvNeXt-Large less AlexNet"),
        ("4.2", "years of progress", 2022 - 2012, "years of both models in section B.1.4"),
        ("4.2", "cases newly beaten, %", beaten["ConvNeXt-Large"] - beaten["AlexNet"], "85 % less 64 %"),
        ("4.2", "least gap @50%", min(gaps[50]), "Table 1"),
        ("4.2", "most gap @50%", max(gaps[50]), "Table 1"),
        ("4.2", "least gap @99%", min(gaps[99]), "Table 1"),
        ("4.2", "most gap @99%", max(gaps[99]), "Table 1"),
        ("4.2", "rating of the human on NAVSIM", human, "hardest case less 20.7"),
        (
            "4.2", "score of the human on the hardest case of NAVSIM",
            predicted_score(human, cells["1", "NAVSIM", "hardest case"]), "plain logistic of 20.7 points",
        ),
    ):  # fmt: skip
        yield Recomputed(("text", section, column), float(value), how)
    yield Recomputed(
        ("text", "4.2", "confidence on easier cases, %"), 100 * predicted_score(best, best - 400),
        "plain logistic, 400 points above the case", read=True,
    )  # fmt: skip


def _appendix(cells: Cells) -> Iterator[Recomputed]:
    """Section B: sizes of the datasets and of the lists of agents, and what is computed from a rate."""
    for section, dataset in (("B.1", "ImageNet"), ("B.4", "LiveCodeBench"), ("B.5", "Waymo")):
        yield Recomputed(("text", f"{section}.1", "cases"), cells["2", dataset, "cases"], "Table 2")
    yield Recomputed(
        ("text", "B.2.1", "cases"), cells["2", "COCO", "cases"],
        f"Table 2; {COCO_EMPTY} images of the split hold no object", slack=COCO_EMPTY,
    )  # fmt: skip
    for place, dataset in enumerate(rows(cells, "2"), start=1):
        listed = ("text", f"B.{place}.4", "agents listed")
        yield Recomputed(listed, cells["2", dataset, "agents"], "Table 2")
        yield Recomputed(("2", dataset, "agents"), cells[listed], f"the list in section B.{place}.4")
    steps = cells["text", "B.2.2", "largest IoU of the AP"] - cells["text", "B.2.2", "smallest IoU of the AP"]
    yield Recomputed(
        ("text", "B.2.2", "IoU thresholds"), steps / cells["text", "B.2.2", "step of the IoU"] + 1, "range / step + 1"
    )
    yield Recomputed(("text", "B.5.2", "buckets"), float(len(BUCKETS)), "the names that follow")
    rate = cells["text", "B.5.1", "time steps a second"]
    yield Recomputed(
        ("text", "B.5.1", "seconds of a clip"), cells["text", "B.5.1", "future time steps"] / rate,
        "future time steps at 10 Hz", read=True,
    )  # fmt: skip
    yield Recomputed(
        ("text", "B.6.1", "seconds of context"),
        cells["text", "B.6.1", "preceding frames"] / cells["text", "B.6.1", "frames a second"],
        "preceding frames at 2 Hz",
    )
