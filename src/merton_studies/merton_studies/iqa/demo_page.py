"""The page of `merton iqa demo`: self-contained, no script, no request."""

from __future__ import annotations

from pathlib import Path

from merton.files import write_file
from merton.pages.environment import environment
from merton.study import execution_page
from merton_studies.iqa import gate_page, metric_page
from merton_studies.iqa.demo import IqaDemo
from merton_studies.opinions import dataset_page

QUESTIONS = {
    "decision": "Can one tell from the image that the robot decides otherwise?",
    "cognition": "Can one tell from the image that the model answers otherwise?",
}


def write_demo_page(shown: IqaDemo, target: Path) -> Path:
    """Write the page; returns its path. Raises InfrastructureError if it cannot be written."""
    text = (
        environment("merton_studies.iqa", QUESTIONS=QUESTIONS, SECTIONS=dataset_page.SECTIONS)
        .get_template("demo_page.html.j2")
        .render(
            shown=shown,
            headline=metric_page.headline(next(iter(shown.tables.values()))),
            opinions=dataset_page.fragments(shown.study, shown.cases),
            tables={
                stage: (
                    metric_page.headline(table),
                    metric_page.splits_section(table),
                    metric_page.tables_section(table),
                    metric_page.published_section(table),
                )
                for stage, table in shown.tables.items()
            },
            gate=gate_page.fragment(shown.gate, 3),
            execution=execution_page.fragment(shown.execution),
            styles=(dataset_page.style(), metric_page.style()),
        )
    )
    write_file(target, text.encode("utf-8", "replace"))
    return target
