"""Writes the table of all keys of an experiment into docs/use/experiments.md, from the models that check them."""

from __future__ import annotations

import re
from pathlib import Path

from merton.experiment.reference import table

PAGE = Path(__file__).parents[2] / "docs" / "use" / "experiments.md"


def main() -> None:
    """Put the table in the place of the one that is there."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        re.sub(r"^\| key \|(?:.*\n)(?:\|.*\n)*", lambda _: f"{table()}\n", text, flags=re.M), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
