"""The numbers that A2Eval prints, recomputed from each other.

Tables 2 to 7 and 9 to 11 of "A2Eval: Agentic and Automated Evaluation for Embodied Brain", and the numbers of its text,
in `config/published/a2eval.csv`. Tables 1, 8, 12 and 13 have no numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from merton.statistics.intervals import interval_text
from merton.statistics.ranking import COEFFICIENTS, agreements, differences, models_needed
from merton_studies.opinions.published import Claim
from merton_studies.papers.facts import Cells, Key, Recomputed, columns, rows

KEPT_MOST = 500
"""K of the paper (section 4.1)."""
EIGHT, MODELS3 = "mean of the eight dimensions", "mean of the three models"


def recompute(cells: Cells) -> Iterator[Recomputed]:
    """Every number that follows from others."""
    yield from _counts(cells)
    yield from _rankings(cells)
    yield from _hours(cells)
    yield from _fidelities(cells)
    for model in rows(cells, "7"):
        values = [cells["7", model, name] for name in columns(cells, "7") if name != "Avg"]
        yield Recomputed(("7", model, "Avg"), float(np.mean(values)), EIGHT, slack=0.005)
        yield Recomputed(("3", model, "ours"), float(np.mean(values)), f"{EIGHT} of table 7", slack=0.005)
    for name in ("kappa", "annotators"):
        values = [cells["9", row, name] for row in rows(cells, "9") if row != "Average"]
        yield Recomputed(("9", "Average", name), float(np.mean(values)), EIGHT, slack=0.005)
    yield from _text(cells)


def claims(cells: Cells, seed: int = 0) -> tuple[Claim, ...]:
    """Claims that follow from the numbers and are not in the paper."""
    ours, source, human = scores(cells)
    gain = differences(ours, source, human, seed=seed)
    rho = {name: agreements(*pair, seed=seed)[0] for name, pair in _pairs(cells).items()}
    needed = models_needed(0.02, rho["ours-human"].value or 0.0, rho["ours-source"].value or 0.0, seed=seed)
    told = [f"{gain[place].value:+.4f} {interval_text(gain[place].over_models, '+.2f')}" for place in (0, 2)]
    single = "; ".join(
        f"{name} {found.value:.2f} {found.over_models:.2f}"
        for name, found in rho.items()
        if found.value is not None and found.over_models is not None
    )
    hours = [sum(cells["5", model, name] for model in rows(cells, "5")) for name in ("source", "ours")]
    final = [cells["6", "Final Score", name] for name in columns(cells, "6")]
    means = [
        float(np.mean([cells["6", row, name] for row in rows(cells, "6") if row != "Final Score"]))
        for name in columns(cells, "6")
    ]
    linear = [COEFFICIENTS["pearson"].of(column, human) for column in (ours, source)]
    return (
        _noted("Intervals of Spearman's rho over the models", f"95 %, {len(human)} models: {single}", True),
        _noted(
            "The gain in rho with people, ours less source, is not resolved",
            f"{told[0]} with {len(human)} models",
            not gain[0].is_resolved,
        ),
        _noted(
            "A true gain of .02 would take hundreds of models to be resolved",
            f"{needed} independent models for a chance of 80 %",
            needed is not None and needed > 10 * len(human),
        ),
        _noted(
            "Pearson's r with people is lower for ours than for the source, which is not resolved either",
            f"{linear[0]:.4f} and {linear[1]:.4f}, a difference of {told[1]}",
            linear[0] < linear[1] and not gain[2].is_resolved,
        ),
        _noted(
            "All models together are less than 4.6 times as fast, which is the best of seven models",
            f"{hours[0]:.1f} against {hours[1]:.1f} hours in table 5: {hours[0] / hours[1]:.2f} times",
            hours[0] / hours[1] < 4.6,
        ),
        _noted(
            "The final scores of table 6 are not means of its rows, but fidelities of totals, which are not printed",
            f"{_listed(final)}; the means are {_listed(means)}",
            any(abs(one - other) > 0.1 for one, other in zip(final, means, strict=True)),
        ),
    )


def _noted(text: str, found: str, still: bool) -> Claim:
    return Claim(text, found, "noted" if still else "does not hold")


def scores(cells: Cells) -> list[list[float]]:
    """The columns of table 3: ours, source, human, of the models in its order."""
    models = [row for row in rows(cells, "3") if ("3", row, "human") in cells]
    return [[cells["3", model, name] for model in models] for name in ("ours", "source", "human")]


def _pairs(cells: Cells) -> dict[str, tuple[list[float], list[float]]]:
    ours, source, human = scores(cells)
    return {"ours-human": (ours, human), "source-human": (source, human), "ours-source": (ours, source)}


def _counts(cells: Cells) -> Iterator[Recomputed]:
    """Table 2."""
    names = [row for row in rows(cells, "2") if row != "Total"]
    source = {name: cells["2", name, "source"] for name in names}
    kept = {name: cells["2", name, "retained"] for name in names}
    total, retained = sum(source.values()), sum(kept.values())
    yield Recomputed(("2", "Total", "source"), total, "sum of the rows")
    yield Recomputed(("2", "Total", "retained"), retained, "sum of the rows")
    for name in names:
        least = 0.0 if name == "Other" else min(float(KEPT_MOST), source[name])
        yield Recomputed(("2", name, "retained"), least, "the smaller of 500 and the source; none of Other")
        yield Recomputed(("2", name, "source share"), 100 * source[name] / total, "count by total, %")
        yield Recomputed(("2", name, "retained share"), 100 * kept[name] / retained, "count by total, %")


def _rankings(cells: Cells) -> Iterator[Recomputed]:
    """The correlations of tables 3 and 4."""
    for pair, columns_of in _pairs(cells).items():
        for name, coefficient in COEFFICIENTS.items():
            value = coefficient.of(*columns_of)
            yield Recomputed(("3", name, pair), value, f"{coefficient.name} of the {len(columns_of[0])} models")
            place = {"ours-source": "source", "ours-human": "human"}.get(pair)
            if name == "spearman" and place:
                yield Recomputed(("4", "Ours", place), value, "Spearman's rho of table 3")


def _hours(cells: Cells) -> Iterator[Recomputed]:
    """Table 5."""
    for model in rows(cells, "5"):
        source, ours = cells["5", model, "source"], cells["5", model, "ours"]
        slack = source / ours * (0.05 / source + 0.05 / ours)
        yield Recomputed(("5", model, "speed-up"), source / ours, "hours of the source by ours", slack)


def _fidelities(cells: Cells) -> Iterator[Recomputed]:
    """Tables 6, 10 and 11."""
    for table, last in (("6", "Final Score"), ("10", "Average"), ("11", "Average")):
        models = [name for name in columns(cells, table) if name != "Avg"]
        for row in rows(cells, table):
            mean = float(np.mean([cells[table, row, model] for model in models]))
            if row != "Average":
                yield Recomputed((table, row, "Avg"), mean, MODELS3, slack=0.05)
        for name in columns(cells, table) if last == "Average" else ():
            values = [cells[table, row, name] for row in rows(cells, table) if row != last]
            yield Recomputed((table, last, name), float(np.mean(values)), EIGHT, slack=0.05)


def _text(cells: Cells) -> Iterator[Recomputed]:
    """Numbers of the text that follow from tables."""
    total, kept = (sum(cells["2", row, name] for row in rows(cells, "2") if row != "Total") for name in _T2)
    hours = {name: [cells["5", model, name] for model in rows(cells, "5")] for name in ("source", "ours")}
    speed = [source / ours for source, ours in zip(hours["source"], hours["ours"], strict=True)]
    small, large = "Qwen3-VL-30B-A3B-Instruct", "Qwen2.5-VL-72B-Instruct"
    gaps = {name: cells["7", small, name] - cells["7", large, name] for name in ("PhysCaus", "DecPlan")}
    yield from (
        *(
            Recomputed(("text", section, name), value, how, read=read)
            for section in ("abstract", "1")
            for name, value, how, read in (
                ("examples left out, %", 100 * (1 - kept / total), "1 - kept by all, table 2", False),
                (
                    "cost saved, %", 100 * (1 - sum(hours["ours"]) / sum(hours["source"])),
                    "1 - all hours of ours by the source's, table 5", False,
                ),
                ("speed-up", max(speed), "the best of the seven models of table 5", True),
            )
        ),
        Recomputed(("text", "1", "models"), float(len(rows(cells, "7"))), "rows of table 7"),
        Recomputed(
            ("text", "1", "GPU hours of a model"), 8 * max(hours["source"]),
            "the longest of table 5, on eight GPUs", read=True,
        ),
        Recomputed(("text", "4.2", "retained examples"), kept, "sum of table 2"),
        Recomputed(("text", "4.4", "retained examples"), kept, "sum of table 2"),
        Recomputed(("text", "4.5", "least speed-up"), min(speed), "table 5"),
        Recomputed(("text", "4.5", "most speed-up"), max(speed), "table 5"),
        Recomputed(("text", "4.4", "PhysCaus, points apart"), gaps["PhysCaus"], "table 7"),
        Recomputed(("text", "4.4", "DecPlan, points apart"), gaps["DecPlan"], "table 7"),
        Recomputed(("text", "F.2", "scoring fidelity, %"), _mean_of(cells, "11"), "mean of table 11's cells"),
        Recomputed(("text", "F.1", "inference fidelity, %"), _mean_of(cells, "10"), "mean of table 10's cells", 0.05),
    )  # fmt: skip
    yield Recomputed(
        ("text", "D.4", "types of agreement"), float(len(columns(cells, "9"))), "columns of table 9, which are listed"
    )
    example = cells["text", "E.3", "sub-tasks of the household scenario"]
    yield Recomputed(("text", "E.2", "fewest sub-tasks of a scenario"), example, "the example in section E.3")
    for key, place in _REPEATED.items():
        yield Recomputed(("text", *key), cells[place], f"as in table {place[0]}, {place[1]}, {place[2]}")


def _mean_of(cells: Cells, table: str) -> float:
    return float(np.mean([value for (name, row, column), value in cells.items()
                          if name == table and row != "Average" and column != "Avg"]))  # fmt: skip


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


_T2 = ("source", "retained")
_SMALL, _LARGE, _HUGE = "Qwen3-VL-30B-A3B-Instruct", "Qwen2.5-VL-72B-Instruct", "Qwen3-VL-235B-A22B-Thinking"
_REPEATED: Mapping[tuple[str, str], Key] = {
    ("4.2", "source examples"): ("2", "Total", "source"),
    ("4.3", "source examples"): ("2", "Total", "source"),
    ("4.4", "source examples"): ("2", "Total", "source"),
    ("4.3", "Other"): ("2", "Other", "source"),
    ("1", "fidelity, %"): ("6", "Final Score", "Avg"),
    ("4.6", "fidelity, %"): ("6", "Final Score", "Avg"),
    ("4.4", "kappa"): ("9", "Average", "kappa"),
    ("4.4", "kappa of annotators"): ("9", "Average", "annotators"),
    ("D.5", "kappa"): ("9", "Average", "kappa"),
    ("D.5", "kappa of annotators"): ("9", "Average", "annotators"),
    ("1", "rho with people"): ("3", "spearman", "ours-human"),
    **{
        ("4.4", f"{model}, {name}"): (table, model, name)
        for model in (_LARGE, _SMALL)
        for table, names in (("3", ("source", "ours", "human")), ("7", ("PhysCaus", "DecPlan")))
        for name in names
    },
    **{
        ("4.4", f"{short}, {name}"): ("2", row, name)
        for short, row in (("PhysCaus", "PhysCausal"), ("DecPlan", "DecPlan"), ("SpatGeo", "SpatGeo"))
        for name in ("source share", "retained share")
    },
    **{
        ("4.5", f"{model}, {name}"): ("5", model, name)
        for model in (_HUGE, "InternVL-3.5-241B-A28B", "Qwen2.5-VL-7B-Instruct")
        for name in ("source", "ours", "speed-up")
    },
}  # fmt: skip
"""Section and name in the text to the place of the table that the number repeats."""
