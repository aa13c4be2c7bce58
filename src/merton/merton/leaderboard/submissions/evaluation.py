"""The host's evaluation of a submission: by when it is due, and how far it is. The record keeps every step.

Its first step is that it was received, with the day by which it is due; each further one is the host's, or the
manufacturer's withdrawal. All times are UTC.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field

from merton.config import Model, load
from merton.files import resource
from merton.results.schema import SUBMISSION_EVENTS

RECEIVED, EVALUATING, SCORED, REFUSED, WITHDRAWN = "received", "evaluating", "scored", "refused", "withdrawn"
ACCEPTED = "accepted"
"""Status of a submission that is neither withdrawn nor superseded."""
BY_THE_HOST = (EVALUATING, SCORED, REFUSED)
"""Statuses that a host can give a submission."""
OPEN = (RECEIVED, EVALUATING)
"""Statuses of an evaluation that is not done, and overdue after its due day."""
SATURDAY = 5


class EvaluationRules(Model):
    """The file config/leaderboards/submissions.yaml; `evaluation_working_days`: 1 to 365."""

    evaluation_working_days: Annotated[int, Field(ge=1, le=365)]


@dataclass(frozen=True)
class Step:
    """A step of an evaluation.

    Attributes:
        at_utc: ISO 8601 with microseconds, ending in Z.
        status: of the evaluation from then on.
        reason: the host's, "" if it gave none.
        due: day, such as "2026-12-01", of the first step; "" of others.
    """

    at_utc: str
    status: str
    reason: str
    due: str


@cache
def load_rules() -> EvaluationRules:
    """The rules in config/leaderboards/submissions.yaml; raises InputError with the line at fault."""
    return load(resource("merton_bringup", "config/leaderboards/submissions.yaml"), EvaluationRules)


def due_day(received: datetime, working_days: int) -> date:
    """The day (UTC) until whose end a submission is to be evaluated.

    Args:
        received: UTC.
        working_days: Monday to Friday, counted from the day after the receipt; holidays count as others [ours].
    """
    day = received.date()
    for _ in range(working_days):
        day += timedelta(days=1)
        while day.weekday() >= SATURDAY:
            day += timedelta(days=1)
    return day


def steps(connection: sa.Connection) -> dict[str, list[Step]]:
    """The steps of every submission by its id, in order."""
    columns = [SUBMISSION_EVENTS.c[name] for name in ("submission", *Step.__dataclass_fields__)]
    found: defaultdict[str, list[Step]] = defaultdict(list)
    for id, *step in connection.execute(sa.select(*columns).order_by(SUBMISSION_EVENTS.c.id)):
        found[id].append(Step(*step))
    return dict(found)


def add_step(connection: sa.Connection, submission: str, step: Step) -> None:
    """Add a step to the record; earlier ones stay as they are."""
    connection.execute(sa.insert(SUBMISSION_EVENTS).values(submission=submission, **vars(step)))


def evaluation(row: Mapping[str, Any], taken: Sequence[Step], window: date) -> dict[str, str]:
    """`due`, `evaluation` and `reason` of a receipt.

    The status is that of the host's last word. As long as there is none, it is received, and scored once the
    submission's window has begun: its scores are on the board then.

    Args:
        row: of the table of submissions.
        taken: its steps.
        window: the day on which the present window began.
    """
    due = next((step.due for step in taken if step.due), "")
    last = next((step for step in reversed(taken) if step.status in BY_THE_HOST), None)
    if row["status"] == WITHDRAWN:
        status = WITHDRAWN
    elif last is not None:
        status = last.status
    else:
        status = SCORED if row["window"] <= window.isoformat() else RECEIVED
    return {"due": due, "evaluation": status, "reason": "" if last is None else last.reason}
