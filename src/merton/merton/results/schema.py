"""The tables of the record, the same in SQLite and in PostgreSQL.

Facts only: matches follow from trials and scores (`merton.results.metrics`), and are never stored. Every
time is UTC, in ISO 8601.
"""

from __future__ import annotations

import math

import sqlalchemy as sa

from merton.results.records import Outcome, Reference

SCHEMA_VERSION = 8
"""Of the tables below. SQLite keeps it as `PRAGMA user_version`, PostgreSQL in `schema_version`."""
VERSION_BEFORE = 7
"""The last one: it lacks the columns `ADDED`, is read as it is, and gets them when it is opened to be written."""

SCORE_RANGES = {"cognition": 1.0, "decision": 1.0, "execution": 100.0, "progress": 1.0, "angle_rad": math.pi}
"""Score of a trial to its maximum; the minimum is 0."""

SUBMISSION_STATES = ("received", "accepted", "rejected", "withdrawn", "superseded")
EVALUATION_STATES = ("received", "evaluating", "scored", "refused", "withdrawn")
COUNTED_STATES = ("accepted", "withdrawn", "superseded")
"""Statuses that use up the manufacturer's month: withdrawing must not allow a second attempt."""

METADATA = sa.MetaData()

# Sorted by code point in either database: the order of a board must not depend on the server's language.
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_Number = sa.Integer().with_variant(sa.BigInteger(), "postgresql")


def _within(column: str, maximum: float) -> sa.CheckConstraint:
    """The last check: NaN fails it in PostgreSQL, and SQLite makes NaN a NULL."""
    return sa.CheckConstraint(f"{column} >= 0 AND {column} <= {maximum!r}", name=f"{column}_in_range")


def _one_of(column: str, values: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{column} IN ({values})", name=f"known_{column}")


_SUCCESS = " ".join(
    f"WHEN '{outcome.value}' THEN {'NULL' if outcome.success is None else int(outcome.success)}" for outcome in Outcome
)

EXPERIMENTS = sa.Table(
    "experiments",
    METADATA,
    sa.Column("id", Text, primary_key=True),
    sa.Column("name", Text),  # of the experiment file
    sa.Column("seed", _Number),
    sa.Column("spec_sha256", Text),  # of the experiment file
    sa.Column("merton_version", Text),
    sa.Column("created_utc", Text),
    sa.Column("world", Text),  # NULL for the embedded cell, and for episodes of another program
    sa.Column("world_versions", Text),  # JSON: package to version
    comment="A run. Unknown values are NULL.",
)

AGENTS = sa.Table(
    "agents",
    METADATA,
    sa.Column("id", Text, primary_key=True),
    sa.Column("version", Text),
    sa.Column("weights_sha256", Text),
    sa.Column("owner", Text),
    comment="The rated agents. Unknown values are NULL.",
)

CASES = sa.Table(
    "cases",
    METADATA,
    sa.Column("id", Text, primary_key=True),
    sa.Column("source", Text, nullable=False),  # "" for Merton's own cases, else the name of an import
    sa.Column("task", Text),
    sa.Column("seed", _Number),
    sa.Column("distortion", Text),
    sa.Column("level", sa.Integer),
    sa.Column("reference_image", Text),  # SHA-256 of the picture's file
    sa.Column("group", Text, nullable=False, server_default=""),  # "" where the task's name says it
    comment="The test cases. Task to level are NULL for foreign ones.",
)

ADDED = (CASES.c.group, EXPERIMENTS.c.world, EXPERIMENTS.c.world_versions)
"""Columns that `VERSION_BEFORE` has not: absent from it, each is what a new row has by default."""

TRIALS = sa.Table(
    "trials",
    METADATA,
    sa.Column("experiment", Text, sa.ForeignKey(EXPERIMENTS.c.id), primary_key=True),
    sa.Column("id", Text, primary_key=True),
    sa.Column("agent", Text, sa.ForeignKey(AGENTS.c.id), nullable=False),
    sa.Column("case", Text, sa.ForeignKey(CASES.c.id), nullable=False),
    sa.Column("outcome", Text, nullable=False),
    sa.Column("cognition", sa.Double),
    sa.Column("decision", sa.Double),
    sa.Column("execution", sa.Double),
    sa.Column("distance_m", sa.Double),
    sa.Column("success", sa.Integer, sa.Computed(f"CASE outcome {_SUCCESS} END", persisted=True)),
    sa.Column("progress", sa.Double),
    sa.Column("path_m", sa.Double),
    sa.Column("angle_rad", sa.Double),
    sa.Column("reference", Text),
    sa.Column("reference_success", sa.Integer),
    sa.Column("cut_short", sa.Integer),
    sa.Column("steps", sa.Integer, nullable=False),
    sa.Column("simulated_s", sa.Double, nullable=False),
    sa.Column("wall_s", sa.Double, nullable=False),
    sa.Column("error_code", sa.Integer, nullable=False),
    sa.Column("error_message", Text, nullable=False),
    *(_within(name, maximum) for name, maximum in SCORE_RANGES.items()),
    _one_of("reference", ", ".join(f"'{item.value}'" for item in Reference)),
    _one_of("reference_success", "0, 1"),
    _one_of("cut_short", "0, 1"),
    sa.CheckConstraint("path_m >= 0", name="path_m_in_range"),
    sa.CheckConstraint(
        "outcome <> 'infrastructure' OR (execution IS NULL AND progress IS NULL)", name="a_fault_has_no_score"
    ),
    sa.CheckConstraint("(progress = 1) = (outcome = 'success')", name="only_success_is_all_progress"),
    sqlite_with_rowid=False,
)

IMPORTS = sa.Table(
    "imports",
    METADATA,
    sa.Column("source", Text, primary_key=True),
    sa.Column("file_sha256", Text, primary_key=True),
    sa.Column("file_name", Text, nullable=False),
    sa.Column("imported_utc", Text, nullable=False),
    sa.Column("metric", Text, comment="That the file's values were mapped to scores by; NULL if they were scores."),
    comment="Where the scores of a source came from.",
)

SCORES = sa.Table(
    "scores",
    METADATA,
    sa.Column("source", Text, primary_key=True),
    sa.Column("agent", Text, sa.ForeignKey(AGENTS.c.id), primary_key=True),
    sa.Column("case", Text, sa.ForeignKey(CASES.c.id), primary_key=True),
    sa.Column("score", sa.Double, nullable=False),
    _within("score", 1.0),
    sqlite_with_rowid=False,
    comment="Foreign response matrices: 0 .. 1, no row where the matrix is blank.",
)

SUBMISSIONS = sa.Table(
    "submissions",
    METADATA,
    sa.Column("id", Text, primary_key=True),
    sa.Column("manufacturer", Text, nullable=False),
    sa.Column("agent", Text, nullable=False),
    sa.Column("version", Text, nullable=False),
    sa.Column("weights_sha256", Text, nullable=False),
    sa.Column("harness_version", Text, nullable=False),
    sa.Column("dataset_sha256", Text, nullable=False),
    sa.Column("received_utc", Text, nullable=False),
    sa.Column("month", Text, nullable=False),  # "2026-11"
    sa.Column("window", Text, nullable=False),
    sa.Column("status", Text, nullable=False),
    sa.Column("archive_sha256", Text, nullable=False),
    sa.Column("manifest", Text, nullable=False),  # JSON
    sa.Column("withdrawn_utc", Text),
    _one_of("status", ", ".join(f"'{state}'" for state in SUBMISSION_STATES)),
)
_COUNTED = SUBMISSIONS.c.status.in_([sa.literal_column(f"'{state}'") for state in COUNTED_STATES])
sa.Index(
    "one_a_month",
    SUBMISSIONS.c.manufacturer,
    SUBMISSIONS.c.month,
    unique=True,
    sqlite_where=_COUNTED,
    postgresql_where=_COUNTED,
)


def _scores_of_submissions(name: str, comment: str | None = None) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        sa.Column("submission", Text, sa.ForeignKey(SUBMISSIONS.c.id), primary_key=True),
        sa.Column("item", Text, primary_key=True),
        sa.Column("score", sa.Double, nullable=False),
        _within("score", 1.0),
        sqlite_with_rowid=False,
        comment=comment,
    )


SUBMISSION_SCORES = _scores_of_submissions("submission_scores")
SUBMISSION_EXECUTIONS = _scores_of_submissions(
    "submission_executions", "Execution scores / 100 that are stated beside successes."
)

SUBMISSION_EVENTS = sa.Table(
    "submission_events",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("submission", Text, sa.ForeignKey(SUBMISSIONS.c.id), nullable=False, index=True),
    sa.Column("at_utc", Text, nullable=False),
    sa.Column("status", Text, nullable=False),
    sa.Column("reason", Text, nullable=False),
    sa.Column("due", Text, nullable=False),  # "2026-12-01" where the status is received, else ""
    _one_of("status", ", ".join(f"'{state}'" for state in EVALUATION_STATES)),
    sqlite_autoincrement=True,
    comment="Steps of the host's evaluation; none is ever changed.",
)

APPLICATION_KINDS = ("model", "benchmark")
APPLICATION_STATES = ("received", "evaluating", "not evaluated", "scored", "accepted", "refused", "withdrawn")

APPLICATIONS = sa.Table(
    "applications",
    METADATA,
    sa.Column("id", Text, primary_key=True),
    sa.Column("kind", Text, nullable=False),
    sa.Column("manufacturer", Text, nullable=False),
    sa.Column("received_utc", Text, nullable=False),
    sa.Column("month", Text, nullable=False),  # "2026-11"
    sa.Column("sha256", Text, nullable=False),  # of the file that was sent
    sa.Column("content", Text, nullable=False),  # JSON
    sa.UniqueConstraint("manufacturer", "kind", "month"),
    _one_of("kind", ", ".join(f"'{kind}'" for kind in APPLICATION_KINDS)),
    comment="Models that the host is asked to evaluate, and benchmarks that want to join.",
)

APPLICATION_EVENTS = sa.Table(
    "application_events",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("application", Text, sa.ForeignKey(APPLICATIONS.c.id), nullable=False, index=True),
    sa.Column("at_utc", Text, nullable=False),
    sa.Column("status", Text, nullable=False),
    sa.Column("note", Text, nullable=False),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("due", Text, nullable=False),  # as in submission_events
    _one_of("status", ", ".join(f"'{state}'" for state in APPLICATION_STATES)),
    sa.CheckConstraint("calls >= 0", name="calls_in_range"),
    sa.CheckConstraint("cost >= 0", name="cost_in_range"),
    sqlite_autoincrement=True,
    comment="Steps of applications and of their evaluation; none is ever changed.",
)

ARENA_ITEMS = sa.Table(
    "arena_items",
    METADATA,
    sa.Column("application", Text, sa.ForeignKey(APPLICATIONS.c.id), primary_key=True),
    sa.Column("benchmark", Text, primary_key=True),
    sa.Column("item", Text, primary_key=True),
    sa.Column("dimension", Text, nullable=False),
    sa.Column("original", Text, nullable=False),
    sa.Column("score", sa.Double, nullable=False),
    _within("score", 1.0),
    sqlite_with_rowid=False,
    comment="Scores of the host's evaluations, question by question.",
)

MADE_LATER = {table.name for table in (SUBMISSION_EXECUTIONS, APPLICATIONS, APPLICATION_EVENTS, ARENA_ITEMS)}
"""Tables that a record of this version may lack: each is made with its first row."""

ATTEMPTS = sa.Table(
    "attempts",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("received_utc", Text, nullable=False),
    sa.Column("manufacturer", Text, nullable=False),
    sa.Column("archive_sha256", Text, nullable=False),
    sa.Column("accepted", sa.Boolean, nullable=False),
    sa.Column("reason", Text, nullable=False),
    sqlite_autoincrement=True,
    comment="Every attempt to submit, accepted or not.",
)

SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("taken_utc", Text, nullable=False),
    sa.Column("name", Text, nullable=False),
    sa.Column("inputs_sha256", Text, nullable=False),
    sa.Column("sha256", Text, nullable=False),  # of the content
    sa.Column("content", Text, nullable=False),
    sqlite_autoincrement=True,
)

RATER_ROLES = ("rater", "expert")
SLOT_KINDS = ("design", "repeat", "gold", "top_up", "turn", "review")

PEOPLE_PROJECTS = sa.Table(
    "people_projects",
    METADATA,
    sa.Column("name", Text, primary_key=True),
    sa.Column("definition", Text, nullable=False),  # canonical JSON
    sa.Column("created_utc", Text, nullable=False),
    comment="Studies in which people rate.",
)

PEOPLE_RATERS = sa.Table(
    "people_raters",
    METADATA,
    sa.Column("project", Text, sa.ForeignKey(PEOPLE_PROJECTS.c.name), primary_key=True),
    sa.Column("id", Text, primary_key=True),  # pseudonym
    sa.Column("position", sa.Integer, nullable=False),  # from 1, in the order of registration
    sa.Column("name", Text),
    sa.Column("role", Text, nullable=False),
    sa.Column("token_sha256", Text),
    sa.Column("registered_utc", Text, nullable=False),
    sa.Column("withdrawn_utc", Text),
    sa.UniqueConstraint("project", "position"),
    sa.UniqueConstraint("project", "role", "name"),
    _one_of("role", ", ".join(f"'{role}'" for role in RATER_ROLES)),
    sa.CheckConstraint("(withdrawn_utc IS NULL) = (name IS NOT NULL)", name="who_withdrew_has_no_name"),
    sa.CheckConstraint("withdrawn_utc IS NULL OR token_sha256 IS NULL", name="who_withdrew_has_no_token"),
    comment="Of a person who withdrew only the pseudonym is left, so that it is never given again.",
)

PEOPLE_SLOTS = sa.Table(
    "people_slots",
    METADATA,
    sa.Column("project", Text, primary_key=True),
    sa.Column("rater", Text, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("item", Text, nullable=False),
    sa.Column("kind", Text, nullable=False),
    sa.Column("issued_utc", Text, nullable=False),
    sa.ForeignKeyConstraint(["project", "rater"], [PEOPLE_RATERS.c.project, PEOPLE_RATERS.c.id]),
    sa.CheckConstraint("number >= 1", name="number_in_range"),
    _one_of("kind", ", ".join(f"'{kind}'" for kind in SLOT_KINDS)),
    sqlite_with_rowid=False,
    comment="Items handed to raters.",
)

PEOPLE_ANSWERS = sa.Table(
    "people_answers",
    METADATA,
    sa.Column("project", Text, primary_key=True),
    sa.Column("id", Text, primary_key=True),  # made by the browser
    sa.Column("rater", Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("answer", Text, nullable=False),  # JSON in ASCII: PostgreSQL holds no NUL in a text
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("saved_utc", Text, nullable=False),
    sa.ForeignKeyConstraint(
        ["project", "rater", "number"], [PEOPLE_SLOTS.c.project, PEOPLE_SLOTS.c.rater, PEOPLE_SLOTS.c.number]
    ),
    sa.CheckConstraint("seconds >= 0", name="seconds_in_range"),
    sa.Index("answers_of_a_slot", "project", "rater", "number"),
    sqlite_with_rowid=False,
    comment="Never changed; only a withdrawal removes any.",
)

PEOPLE_UNDOS = sa.Table(
    "people_undos",
    METADATA,
    sa.Column("project", Text, primary_key=True),
    sa.Column("answer", Text, primary_key=True),
    sa.Column("id", Text, nullable=False),  # made by the browser
    sa.Column("undone_utc", Text, nullable=False),
    sa.ForeignKeyConstraint(["project", "answer"], [PEOPLE_ANSWERS.c.project, PEOPLE_ANSWERS.c.id]),
    sa.UniqueConstraint("project", "id"),
    sqlite_with_rowid=False,
    comment="Answers that their raters took back.",
)

DOCUMENTS = {
    (SUBMISSIONS.name, "manifest"),
    (APPLICATIONS.name, "content"),
    (SNAPSHOTS.name, "content"),
    (PEOPLE_PROJECTS.name, "definition"),
    (PEOPLE_ANSWERS.name, "answer"),
}
"""Columns whose text is a whole document: table, column."""
