"""The numbers that Embodied-IQA prints (arXiv 2505.16815): its tables of coefficients, and the counts of its text.

Tables 2, 4 and 8a are in `config/published/embodied_iqa.csv`, a line a triple of SRCC, KRCC and PLCC; the counts and
the numbers of the text are in `config/published/embodied_iqa_text.csv`. The images behind the coefficients are not
public, so what can be recomputed is whether KRCC and SRCC of a triple belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from merton.cognition.text import Cider
from merton.perception.dataset import TASKS_PER_IMAGE, VERBS
from merton.perception.distortion import CATEGORIES, DISTORTIONS, LEVELS
from merton.statistics.correlation import fisher_interval
from merton_studies.iqa.published_iqa import TABLES, expected_krcc, permuted, published
from merton_studies.opinions.published import printed_rows
from merton_studies.papers.facts import Cells, Fact, Key, Recomputed

INDICATORS = ("srcc", "krcc", "plcc")
HIDDEN = "a measurement; the images and labels behind it are not public"
ORIGINS = {
    "decision": "Table 2, section 5.2", "cognition": "Table 4, appendix F", "cross": "Table 8 (a), section 5.3",
}  # fmt: skip
LISTED_VERBS = ("Cover", "Insert", "Move", "Pick", "Place", "Pour", "Press", "Pull", "Push", "Twist")
"""Section 3.2."""
TYPES = 30
"""Distortion types, over which the paper correlates Execution with Cognition and Decision."""


def read_triples() -> tuple[Fact, ...]:
    """The numbers of Tables 2, 4 and 8a: three facts a line of the file, two in Table 8a, which has no KRCC."""
    return tuple(fact for row in printed_rows("embodied_iqa") for fact in _facts(row))


def recompute(cells: Cells) -> Iterator[Recomputed]:
    """Every number that follows from others."""
    yield from _triples()
    yield from _counts(cells)
    yield from _databases(cells)
    yield from _text(cells)


def _facts(line: Mapping[str, str]) -> Iterator[Fact]:
    """A line's recorded verdict is that of its KRCC; where it is a misprint, so is the whole triple."""
    wrong = line["verdict"] == "misprint"
    for name in INDICATORS:
        if not line[name]:
            continue
        own = wrong or name == "krcc"
        known = line[f"{name}_recomputed"]
        yield Fact(
            _table(line["table"]), line["metric"], f"{line['column']} {name.upper()}", line[name],
            ORIGINS[line["table"]],
            float(known) if known else None,
            float(line[name]) - float(known) if known else None,
            line["verdict"] if own else "cannot be known",  # type: ignore[arg-type]
            line["reason"] if own else HIDDEN,
        )  # fmt: skip


def _table(name: str) -> str:
    return TABLES[name].removeprefix("Table ")


def _triples() -> Iterator[Recomputed]:
    copies = {(row.metric, row.column): other for row, other in permuted()}
    for table in ("decision", "cognition"):
        for row in published(table):
            key: Key = (_table(table), row.metric, f"{row.column} KRCC")
            if table == "cognition" and (row.metric, row.column) in copies:
                other = copies[row.metric, row.column]
                for name in INDICATORS:
                    yield Recomputed(
                        (key[0], key[1], f"{row.column} {name.upper()}"), getattr(other, name),
                        f"Table 2, {row.metric}, {other.column}", verdict="misprint",
                    )  # fmt: skip
                continue
            how = "KRCC of a bivariate normal distribution with this SRCC: what it should be near"
            yield Recomputed(key, expected_krcc(row.srcc), how, verdict="cannot be known")


def _counts(cells: Cells) -> Iterator[Recomputed]:
    """Sizes of the database, section 3 and Table 1."""
    references = cells["text", "3.1", "reference images"]
    pairs = references * len(DISTORTIONS)
    verbs = len(set(LISTED_VERBS) & set(VERBS))
    vlms, vlas = cells["text", "3.3", "VLMs"], cells["text", "3.4", "VLAs"]
    annotations = pairs * TASKS_PER_IMAGE * (vlms + vlas)
    runs = cells["text", "5.4", "VLAs"] * verbs * len(DISTORTIONS)
    words = ["press the red button on the box", "pick the cup beside the plate"]
    parts = {"29520": 0.8 * pairs, "7380": 0.2 * pairs}
    told = "references x types of distortion"
    answered = "images x tasks x models"
    of_vlms, of_vlas = pairs * TASKS_PER_IMAGE * vlms / 1e6, pairs * TASKS_PER_IMAGE * vlas / 1e6
    for section, column, value, how in (
        ("abstract", "image pairs, thousand", pairs / 1e3, told),
        ("abstract", "annotations, million", annotations / 1e6, answered),
        ("1", "image pairs, thousand", pairs / 1e3, told),
        ("1", "annotations, million", annotations / 1e6, answered),
        ("1", "executed tasks, thousand", runs / 1e3, "VLAs x tasks x types"),
        ("Fig. 2", "image pairs, thousand", pairs / 1e3, told),
        ("Fig. 2", "Cognition scores, million", of_vlms, answered),
        ("Fig. 2", "Decision scores, million", of_vlas, answered),
        ("Fig. 2", "executed tasks, thousand", runs / 1e3, "VLAs x tasks x types"),
        ("3.1", "distorted images", pairs, told),
        ("3.1", "types of distortion", len(DISTORTIONS), "Merton's registry"),
        ("3.1", "categories of distortion", len(CATEGORIES), "Merton's registry"),
        ("3.1", "levels", max(LEVELS), "Merton's registry"),
        ("3.2", "tasks an image", TASKS_PER_IMAGE, "Merton's data set"),
        ("3.2", "verbs", verbs, "of the list, those that Merton's tasks have"),
        ("3.3", "highest CIDEr", Cider(words).score(words[0], words[0]), "Merton's CIDEr of a sentence with itself"),
        ("5.1", "training pairs", parts["29520"], "8 : 2 of the pairs"),
        ("5.1", "test pairs", parts["7380"], "8 : 2 of the pairs"),
        ("5.1", "training references", 0.8 * references, "8 : 2 of the references"),
        ("5.1", "test references", 0.2 * references, "8 : 2 of the references"),
        ("5.4", "tasks", verbs, "one a verb"),
        ("5.4", "types of distortion", len(DISTORTIONS), "Merton's registry"),
        ("A", "Execution samples", runs, "VLAs x tasks x types"),
        ("E", "images to annotate", references, "section 3.1"),
        ("E", "source databases", 69 - 63 + 1, "references [63] to [69]"),
    ):
        yield Recomputed(("text", section, column), float(value), how)


def _databases(cells: Cells) -> Iterator[Recomputed]:
    """Table 1, in the units of its columns: thousands, millions."""
    per = {name: cells["1", name, "types"] * cells["1", name, "levels"] for name in ("TID2013", "KADID-10K")}
    for name, product in per.items():
        yield Recomputed(
            ("1", name, "distorted, thousand"), cells["1", name, "references"] * product / 1e3,
            "references x types x levels",
        )  # fmt: skip
    for name, scale in (("MPD", 1.0), ("EPD", 1e-3)):
        value = cells["1", name, "references"] * cells["1", name, "types"] * scale
        yield Recomputed(("1", name, "distorted, thousand"), value, "references x types: one level each")
    mpd = cells["1", "MPD", "distorted, thousand"] * 15 * cells["1", "MPD", "dimensions"] / 1e3
    yield Recomputed(("1", "MPD", "annotations, million"), mpd, "images x 15 subjects x 5 dimensions", read=True)
    references = cells["text", "3.1", "reference images"]
    pairs, models = references * len(DISTORTIONS), cells["text", "3.3", "VLMs"] + cells["text", "3.4", "VLAs"]
    for column, value, how in (
        ("references, thousand", references / 1e3, "section 3.1"),
        ("distorted, thousand", pairs / 1e3, "references x types of distortion"),
        ("types", len(DISTORTIONS), "Merton's registry"),
        ("levels", max(LEVELS), "Merton's registry"),
    ):
        yield Recomputed(("1", "Embodied-IQA", column), float(value), how)
    yield Recomputed(
        ("1", "Embodied-IQA", "annotations, million"), pairs * TASKS_PER_IMAGE * models / 1e6,
        "images x tasks x models", slack=0.005,
    )  # fmt: skip


def _text(cells: Cells) -> Iterator[Recomputed]:
    """Sections 1, 3 to 5 and the appendix."""
    cognition = [cells["Fig. 4", "VLMs", name] for name in ("Precision", "Recall", "Semantic")]
    decision = [cells["Fig. 4", "VLAs", name] for name in ("Position", "Rotation", "State")]
    table = {row.metric: row.group for row in published("decision")}
    srcc = {(row.metric, row.column): row.srcc for row in published("decision")}
    best = {
        group: max(srcc[name, "rotation"] for name, own in table.items() if own == group)
        for group in ("full_reference", "no_reference")
    }
    topiq = [value for (name, _), value in srcc.items() if name.startswith("TOPIQ")]
    zero = [row.srcc for row in published("cognition") if row.group == "zero_shot"]
    live = [row.srcc for row in published("cross") if row.column == "live"]
    other = [row.srcc for row in published("cross") if row.column == "cognition" and row.metric == "AHIQ"]
    yield Recomputed(("text", "1", "IQA methods"), float(len(table)), "rows of Table 2")
    for group in ("zero_shot", "full_reference", "no_reference"):
        count = float(list(table.values()).count(group))
        yield Recomputed(("text", "5.1", f"{group.replace('_', '-')} metrics"), count, "rows of Table 2")
    yield Recomputed(("text", "4", "mean SRCC of VLMs"), float(np.mean(cognition)), "mean of Fig. 4")
    yield Recomputed(("text", "4", "mean SRCC of VLAs"), float(np.mean(decision)), "mean of Fig. 4")
    yield Recomputed(
        ("text", "5.2", "SRCC of FR methods"), best["full_reference"], "the best, of Rotation alone", read=True
    )
    yield Recomputed(
        ("text", "5.2", "SRCC of NR methods"), best["no_reference"], "the best, of Rotation alone", read=True
    )
    yield Recomputed(("text", "5.2", "SRCC of TOPIQ"), float(np.mean(topiq)), "mean over Table 2, FR and NR", read=True)
    yield Recomputed(("text", "5.3", "SRCC on LIVE"), min(live), "the lowest of ten; the second is .3477", read=True)
    yield Recomputed(("text", "5.3", "SRCC of AHIQ on VLMs"), other[0], "Table 8a")
    yield Recomputed(("text", "F", "SRCC of a zero-shot metric on Cognition"), max(zero), "the highest of Table 4")
    yield Recomputed(("text", "A", "share of vision, %"), cells["text", "3.2", "share of vision, %"], "section 3.2")
    yield Recomputed(
        ("text", "A", "share of upper limbs, %"), cells["text", "3.5", "share of upper limbs, %"], "section 3.5",
        read=True,
    )  # fmt: skip
    for column in ("SRCC of Cognition and Execution", "SRCC of Decision and Execution"):
        for name, value in zip(("lower", "upper"), fisher_interval(cells["text", "5.4", column], TYPES), strict=True):
            yield Recomputed(
                ("text", "5.4", f"{column}, {name} limit"), value, f"95 %, Fisher's transform, {TYPES} types"
            )
