"""The options that give a role of the curation to an LLM, the same for every command, and the end by the budget."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from merton.cli.console import print_err
from merton.extras import ready

if TYPE_CHECKING:
    from merton_studies.curation.roles import Chosen

BUDGET_SPENT = 3
"""Exit code of a curation that its budget of calls or money ended."""

Proposer = Annotated[
    str | None,
    typer.Option("--proposer", metavar="MODEL", help="Model that proposes dimensions."),
]
Reviewer = Annotated[str | None, typer.Option("--reviewer", metavar="MODEL", help="Model that reviews them.")]
Assigner = Annotated[
    list[str] | None,
    typer.Option("--assigner", metavar="MODEL", help="Model that votes, or several; else computed voters do."),
]
Voters = Annotated[int | None, typer.Option("--voters", min=1, metavar="N", help="Voters of an assigner; 5.")]
Pictures = Annotated[int, typer.Option("--pictures", min=0, metavar="N", help="Pictures that a voter is shown.")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", metavar="N", help="Most calls of models, in all starts.")]
MaxCost = Annotated[float | None, typer.Option("--max-cost", metavar="X", help="Most money, by cost_per_1000.")]


def chosen_roles(
    proposer: str | None,
    reviewer: str | None,
    assigner: list[str] | None,
    voters: int | None,
    pictures: int,
    max_calls: int | None,
    max_cost: float | None,
) -> Chosen:
    """The roles and limits that these options give; raises MissingDependencyError for extras of their models."""
    from merton.experiment.dry_run import extras_of_models
    from merton_studies.curation.roles import Chosen

    assigners = tuple(assigner or ())
    ready("a model in a role", *extras_of_models(filter(None, (proposer, reviewer, *assigners))))
    return Chosen(
        proposer=proposer,
        reviewer=reviewer,
        assigners=assigners,
        voters=voters,
        pictures=pictures,
        max_calls=max_calls,
        max_cost=max_cost,
    )


@contextmanager
def budget_ends() -> Iterator[None]:
    """Around the work: a spent budget is one sentence and the exit code 3."""
    from merton_studies.curation.budget import BudgetExhaustedError

    try:
        yield
    except BudgetExhaustedError as error:
        print_err(f"merton: {error}")
        raise typer.Exit(BUDGET_SPENT) from None
