"""The Data Agent from a pool to a benchmark: dimensions, assignment, sampling, card and page (A2Eval, section 3.1).

Each part is a file of the curation's folder (`merton_studies.curation.curated`); after a kill -9 the same call goes on,
asks no model twice, and ends in the same bytes.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from merton import __version__
from merton.errors import InputError
from merton.files import claim, locked_folder, write_file
from merton.progress import Step, quiet
from merton.seeding import generator
from merton_studies.curation.agents import Balance, left_out
from merton_studies.curation.assignment import Assignment, assign, told_invalid, write_assignment
from merton_studies.curation.benchmark import write_benchmark
from merton_studies.curation.card import write_card
from merton_studies.curation.computed.learners import Shot, shot_voters
from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.computed.texts import Remembered
from merton_studies.curation.curated import (
    ASSIGNMENTS,
    BALANCE,
    CURATION,
    MEMORY,
    REDUNDANCY,
    TAXONOMY,
    Curated,
    read_curated,
)
from merton_studies.curation.embedding import Embeddings, embed, embed_texts, text_embedder
from merton_studies.curation.given import given
from merton_studies.curation.induction import Induction, Iterations, induce
from merton_studies.curation.page import write_page
from merton_studies.curation.pool import Pool
from merton_studies.curation.question import questions_sha256
from merton_studies.curation.redundancy import Integers, measure, without_restatements, write_redundancy
from merton_studies.curation.roles import Chosen, Roles, check, roles
from merton_studies.curation.sampling import PER_DIMENSION, Kept, sample
from merton_studies.curation.taxonomy import Taxonomy, read_taxonomy, write_taxonomy

SETTINGS, WORK = "settings.json", "work"
"""File of the request, written first; and the folder of embeddings and answers, which can be deleted at the end."""
PACKAGES = ("numpy", "scikit-learn", "sentence-transformers", "torch", "transformers")
"""Their versions are part of the result."""


@dataclass(frozen=True)
class Wanted:
    """The request to a curation.

    Attributes:
        taxonomy: name or file of dimensions; None: the proposer and the reviewer of `chosen` find them, and without
            models they are those of `given`.
        keep: most questions of a dimension (K of equation 5).
        shots: labelled questions of each dimension that teach the voters without an LLM; 0: they have the definitions.
        seed: of everything that is drawn.
        chosen: models of the roles.
    """

    taxonomy: str | None = None
    keep: int = PER_DIMENSION
    shots: int = 0
    seed: int = 0
    chosen: Chosen = field(default_factory=Chosen)

    @property
    def about(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "taxonomy": self.taxonomy,
            "keep": self.keep,
            "shots": self.shots,
            "seed": self.seed,
            "roles": self.chosen.model_dump(mode="json", exclude={"max_calls", "max_cost"}),
        }


@dataclass
class _Known:
    """The sentence model, whose vectors the computed voters use again."""

    made: dict[str, str]
    embed: Remembered


def curate(
    pool: Pool,
    out: Path,
    wanted: Wanted,
    cache: Path | None = None,
    step: Step = quiet,
) -> Curated:
    """Make the curated benchmark of a pool, or go on making it.

    Args:
        pool: read from its folder.
        out: folder of the curation, new or begun by the same call.
        wanted: settings.
        cache: file of models' answers, in `out` by default.
        step: shows the progress.

    Raises:
        InputError: the folder holds a curation of another pool or with other settings, or no such taxonomy or model.
        BudgetExhaustedError: the budget of calls or money is spent; everything so far is kept.
        InfrastructureError: a model's server or the disk failed; everything so far is kept.
        MissingDependencyError: a package of the extra `curation` is not installed.
    """
    with locked_folder(out, "merton curate build"):
        about = {
            **wanted.about,
            "pool": {**pool.made, "questions": len(pool.questions), "sha256": questions_sha256(pool.questions)},
        }
        shots = _shots(pool, wanted)  # a name that does not exist must not claim the folder
        if wanted.taxonomy is not None:
            read_taxonomy(wanted.taxonomy)
        check(wanted.chosen)
        known = given(pool) if _is_given(wanted) else None
        claim(out / SETTINGS, about, "a curation")
        texts = Remembered(embed_texts)
        vectors = embed(pool, out / WORK / "vectors.sqlite", step, texts=_Known(text_embedder().made, texts))
        answers = cache or out / WORK / "answers.sqlite"
        with roles(wanted.chosen, lambda: zero_shot_voters(texts), pool, out, answers, wanted.seed) as who:
            rows = without_restatements(pool, vectors)
            if known is None:
                taxonomy, induction = _dimensions(pool, out, wanted, who, vectors, rows, texts, step)
                voters = shot_voters(taxonomy, shots, texts) if shots else who.voters
            else:
                taxonomy, induction = known[0], None
                voters = (known[1],) if known[1] else who.voters
            assignment = assign(pool, taxonomy, voters, step)
            with step("sample"):
                kept = _sampled(assignment, vectors, rows, wanted)
            told = _told(about, who, vectors, len(rows), assignment, induction)
            if known is not None:
                told["dimensions"] = known[2]
            told["shots"] = [shot.question.id for shot in shots]
            if invalid := told_invalid(assignment, voters):
                told["invalid_votes"] = invalid
        write_taxonomy(taxonomy, out / TAXONOMY)
        write_assignment(assignment, out / ASSIGNMENTS)
        balance = assignment.balance(one.dimension for one in kept)
        write_file(out / BALANCE, (balance.model_dump_json(indent=1) + "\n").encode())
        found = measure(pool, vectors, assignment.dimension, [one.index for one in kept], step=step)
        write_redundancy(found, out / REDUNDANCY)
        with step("write the benchmark") as on_progress:
            write_benchmark(pool, kept, out, told, on_progress)
            write_file(out / CURATION, _json(told))
            write_card(out)
            write_page(out, pool)
        return read_curated(out)


def _is_given(wanted: Wanted) -> bool:
    """Whether the pool alone says which dimensions there are: no taxonomy is named, and no model in any role."""
    if wanted.taxonomy is not None or (wanted.chosen.proposer and wanted.chosen.reviewer):
        return False
    if wanted.chosen.models:
        raise InputError("without --taxonomy, models find the dimensions: name them with --proposer and --reviewer")
    return True


def _shots(pool: Pool, wanted: Wanted) -> list[Shot]:
    """The labelled questions that teach: of each dimension at most `shots`, drawn from the pool."""
    if not wanted.shots:
        return []
    if wanted.taxonomy is None or wanted.chosen.assigners:
        raise InputError("--shots teaches voters without an LLM the dimensions of a taxonomy: name one with --taxonomy")
    found = []
    for name in read_taxonomy(wanted.taxonomy).names:
        own = [question for question in pool.questions if question.dimension == name]
        order = generator("curation shots", wanted.seed, name).permutation(len(own))[: wanted.shots]
        found += [Shot(own[index], name) for index in order]
    if not found:
        raise InputError(f"--shots needs questions with a dimension of {wanted.taxonomy}, and the pool has none")
    return found


def _dimensions(
    pool: Pool,
    out: Path,
    wanted: Wanted,
    who: Roles,
    vectors: Embeddings,
    rows: Integers,
    texts: Remembered,
    step: Step,
) -> tuple[Taxonomy, Induction | None]:
    """The dimensions, given or found."""
    if wanted.taxonomy is not None:
        return read_taxonomy(wanted.taxonomy), None

    def try_out(taxonomy: Taxonomy) -> Balance:
        assignment = assign(pool, taxonomy, who.voters, step)
        return assignment.balance(one.dimension for one in _sampled(assignment, vectors, rows, wanted))

    found = induce(pool, *who.finders, try_out, Iterations(), out / MEMORY, texts)
    return found.taxonomy, found


def _sampled(assignment: Assignment, vectors: Embeddings, rows: Integers, wanted: Wanted) -> list[Kept]:
    """Equation 5 over some rows of the pool: the questions that restate no other."""
    found = sample([assignment.dimension[row] for row in rows], vectors.vectors[rows], wanted.keep, wanted.seed)
    return [replace(one, index=int(rows[one.index])) for one in found]


def _told(
    about: Mapping[str, Any],
    who: Roles,
    vectors: Embeddings,
    distinct: int,
    assignment: Assignment,
    induction: Induction | None,
) -> dict[str, Any]:
    """curation.json: settings, seeds, versions, hashes; `distinct` questions restate no other."""
    told: dict[str, Any] = {
        "settings": {name: value for name, value in about.items() if name != "pool"},
        "pool": about["pool"],
        "embedding": vectors.made,
        "sampling": {"strategy": "diverse", "restatements_left_out": vectors.vectors.shape[0] - distinct},
        "voters": list(assignment.voters),
        "roles": who.about,
        "versions": {"merton": __version__, "python": platform.python_version()}
        | {name: version(name) for name in PACKAGES},
    }
    if who.budget:
        told["calls"] = {"calls": who.budget.calls, "cost": who.budget.cost}
    if induction:
        told["induction"] = {"ended": induction.ended, "reason": induction.reason, "rounds": len(induction.rounds)}
        if lost := left_out(induction.rounds):
            told["induction"]["left_out"] = lost
    return told


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
