"""Writes the list of all keys of an experiment into docs/use/experiments.md, from the models that check them."""

from __future__ import annotations

import re
from pathlib import Path

from merton.experiment.reference import listing

PAGE = Path(__file__).parents[2] / "docs" / "use" / "experiments.md"


def main() -> None:
    """Put the list in the place of the one that is there, which begins with `name`."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(re.sub(r"^- `name`:(?:.*\n)(?:- .*\n)*", lambda _: f"{listing()}\n", text, flags=re.M), "utf-8")


if __name__ == "__main__":
    main()
