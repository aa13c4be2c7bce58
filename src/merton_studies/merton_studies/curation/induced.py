"""An induction as a folder: the dimensions of a pool, and how they were found."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from merton.files import claim, write_file
from merton.progress import Step, quiet
from merton_studies.curation.agents import Balance, left_out
from merton_studies.curation.assignment import assign
from merton_studies.curation.induction import Embed, Induction, Iterations, induce
from merton_studies.curation.pool import Pool
from merton_studies.curation.roles import Roles
from merton_studies.curation.sampling import PER_DIMENSION
from merton_studies.curation.taxonomy import Taxonomy, write_taxonomy

TAXONOMY, MEMORY, SETTINGS = "taxonomy.yaml", "memory.jsonl", "induction.json"


def induce_into(
    out: Path,
    pool: Pool,
    roles: Roles,
    embed: Embed,
    settings: dict[str, Any],
    step: Step = quiet,
) -> Induction:
    """Find the dimensions of a pool; writes taxonomy.yaml, memory.jsonl and induction.json into a folder that exists.

    An induction that was begun there with the same settings goes on. A trial assigns all questions; of each dimension
    sampling would keep K = 500, or all of fewer, so they are counted and not chosen.

    Args:
        settings: JSON values that say what the result follows from, beside the roles: hash of the pool,
            seeds, model of the embedding.
        step: shows progress.

    Raises:
        InputError: the folder has an induction with other settings.
        InfrastructureError: it cannot be written, or the server of a role failed.
        BudgetExhaustedError: of calls or money.
    """
    (proposer, reviewer), iterations = roles.finders, Iterations()
    told = {
        "form": "merton induction 1",
        **settings,
        "proposer": proposer.name,
        "reviewer": reviewer.name,
        "voters": [voter.name for voter in roles.voters],
        "roles": roles.about,
        "iterations": iterations.model_dump(),
        "versions": {name: version(name) for name in ("numpy", "scikit-learn")},
    }
    claim(out / SETTINGS, told, "an induction")

    def try_out(taxonomy: Taxonomy) -> Balance:
        assigned = assign(pool, taxonomy, roles.voters, step)
        counts = assigned.balance().assigned
        return assigned.balance(name for name in taxonomy.names for _ in range(min(counts[name], PER_DIMENSION)))

    found = induce(pool, proposer, reviewer, try_out, iterations, out / MEMORY, embed)
    write_taxonomy(found.taxonomy, out / TAXONOMY)
    ended = {"ended": found.ended, "reason": found.reason, "left_out": left_out(found.rounds)}
    _write(out, told | ended)
    return found


def _write(out: Path, told: dict[str, Any]) -> None:
    write_file(out / SETTINGS, (json.dumps(told, indent=1, sort_keys=True) + "\n").encode())
