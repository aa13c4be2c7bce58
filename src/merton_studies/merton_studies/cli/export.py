"""`merton export`: publications of a lab, as folders that other programs load."""

from __future__ import annotations

from merton.cli.tree import App
from merton_studies.cli.export_hub import hub_command
from merton_studies.cli.export_lerobot import lerobot_command

app = App("What a lab publishes: a dataset with a card for a hub, and demonstrations for LeRobot.")

app.command("hub", short_help="A dataset folder for the Hugging Face hub: tables, pictures, card, Croissant")(
    hub_command
)
app.command("lerobot", short_help="Executed trials as demonstrations that LeRobot loads")(lerobot_command)
