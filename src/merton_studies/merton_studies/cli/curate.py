"""`merton curate`: questions of many benchmarks made into a small, balanced one, and models run on it."""

from __future__ import annotations

from merton.cli.tree import App
from merton_studies.cli.curate_ablation import ablation_command
from merton_studies.cli.curate_answer import answer_command
from merton_studies.cli.curate_build import build_command
from merton_studies.cli.curate_cell import cell_command
from merton_studies.cli.curate_demo import demo_command
from merton_studies.cli.curate_dimensions import induce_command, voters_command
from merton_studies.cli.curate_evaluate import evaluate_command
from merton_studies.cli.curate_import import import_command, join_command
from merton_studies.cli.curate_page import page_command
from merton_studies.cli.curate_people import agreement_command, ranking_command, sheet_command
from merton_studies.cli.curate_pools import show_command

app = App("Questions of many benchmarks made into a small, balanced one that agents run and score.")

app.command("demo", short_help="The whole chain from nothing, on one page")(demo_command)
app.command("cell", short_help="Render a pool of questions about scenes of the cell, with exact answers")(cell_command)
app.command("import", short_help="Make a pool of questions from a published benchmark")(import_command)
app.command("join", short_help="Join pools into one")(join_command)
app.command("show", short_help="What is in a pool of questions, or in a curated benchmark")(show_command)
app.command("induce", short_help="Find the capability dimensions of a pool")(induce_command)
app.command("build", short_help="Make a small, balanced benchmark of a pool")(build_command)
app.command("answer", short_help="What a model answered in a role; have it forgotten")(answer_command)
app.command("evaluate", short_help="Run models on a benchmark and score them, in a sandbox")(evaluate_command)
app.command("page", short_help="Write the page of a curated benchmark again, with the scores of models")(page_command)
app.command("ranking", short_help="Whether benchmarks, and people, rank models alike")(ranking_command)
app.command("ablation", short_help="Ways to sample compared on one pool, with intervals")(ablation_command)
app.command("voters", short_help="How far voters without an LLM agree with people")(voters_command)
app.command("sheet", short_help="A sheet on which people check the dimensions of questions")(sheet_command)
app.command("agreement", short_help="How far people agree with the dimensions of questions")(agreement_command)
