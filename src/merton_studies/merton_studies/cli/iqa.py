"""`merton iqa`: image quality for robots."""

from __future__ import annotations

from merton.cli.tree import App
from merton_studies.cli.iqa_benchmark import benchmark_command
from merton_studies.cli.iqa_cross import cross_command
from merton_studies.cli.iqa_demo import demo_command
from merton_studies.cli.iqa_gate import gate_command
from merton_studies.cli.iqa_human import human_command
from merton_studies.cli.iqa_metrics import check_command, list_command, show_command
from merton_studies.cli.iqa_train import train_command

app = App("Image quality for robots: metrics, their training and comparison, and a gate.")

app.command("list")(list_command)
app.command("show")(show_command)
app.command("check")(check_command)
app.command("gate", short_help="What refusing bad images is worth; the threshold for the robot")(gate_command)
app.command("train", short_help="A metric learns from opinions; goes on after a kill")(train_command)
app.command("benchmark", short_help="Metrics against opinions: the paper's table, with floors and ceilings")(
    benchmark_command
)
app.command("cross", short_help="A metric trained on one kind of opinions, tested on others")(cross_command)
app.command("human", short_help="People's opinions beside those of models, image by image")(human_command)
app.command("demo", short_help="The whole study from nothing, on one page")(demo_command)
