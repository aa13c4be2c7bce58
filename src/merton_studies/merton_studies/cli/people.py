"""`merton people`: pages on which people define tasks, judge episodes and check the machines."""

from __future__ import annotations

from merton.cli.tree import App
from merton_studies.cli.people_board import board_command
from merton_studies.cli.people_judge import judge_command
from merton_studies.cli.people_project import check_command, new_command
from merton_studies.cli.people_raters import invite_command, list_command, withdraw_command
from merton_studies.cli.people_serve import serve_command
from merton_studies.cli.people_statistics import export_command, stats_command
from merton_studies.cli.people_videos import videos_command

app = App("Studies with people: tasks, judgements and ratings, on pages that a browser opens.")

app.command("new", short_help="Write a small example project of a protocol")(new_command)
app.command("check", short_help="Read a project and all its items; say what is in it")(check_command)
app.command("serve", short_help="Serve a study to its raters until Ctrl-C")(serve_command)
app.command("invite", short_help="Make a link for each person of a project")(invite_command)
app.command("list", short_help="Show who takes part and how far they are")(list_command)
app.command("withdraw", short_help="Remove all data of a person")(withdraw_command)
app.command("stats", short_help="How far raters agree, and what is missing yet")(stats_command)
app.command("export", short_help="Write what the rest of Merton reads, and the statistics")(export_command)
app.command("board", short_help="The board of world models from the scores of annotators")(board_command)
app.command("judge", short_help="A record of a run whose trials people have judged")(judge_command)
app.command("videos", short_help="Film trials of a run, or films with planted defects")(videos_command)
