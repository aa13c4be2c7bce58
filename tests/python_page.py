"""The snippets of docs/use/python.md: run as they stand, in a folder with the files that the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "use" / "python.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
FILES = {"csv": "scores.csv", "yaml": "small.yaml"}
"""Kind of a block to the name of the file that the snippets read."""
IN_GRAPH = "Run an experiment in a graph of nodes"
"""The section whose snippet starts nodes."""


class Snippet(NamedTuple):
    """A section of the page: its heading, its code, and the text that this prints."""

    heading: str
    code: str
    output: str

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run the code in a folder, which gets the files of the page."""
        (folder / "docs").symlink_to(ROOT / "docs")
        for kind, content in BLOCK.findall(PAGE):
            if kind in FILES:
                (folder / FILES[kind]).write_text(content, encoding="utf-8")
        command = [sys.executable, "-c", self.code]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def snippets() -> list[Snippet]:
    """The page's snippets in their order."""
    every = []
    for section in PAGE.split("\n## ")[1:]:
        blocks = dict(BLOCK.findall(section))
        every.append(Snippet(section.partition("\n")[0], blocks["python"], blocks["text"]))
    return every
