"""The packages that `make setup` installs, and a hook that hides all others from a process."""

from __future__ import annotations

import re
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sources import PROJECTS, ROOT, project

IN_CMEEL = frozenset({"coal", "eigenpy", "pinocchio"})
"""Modules of `pin` in a folder of their own, which metadata do not list."""
HOOK = """
import sys

hidden = frozenset({hidden!r})

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""


@cache
def closure(*lines: str) -> frozenset[str]:
    """Names of the installed distributions that requirements bring, directly and indirectly."""
    result: set[tuple[str, str]] = set()
    todo = [Requirement(line) for line in lines]
    while todo:
        wanted = todo.pop()
        for extra in ("", *wanted.extras):
            each = (canonicalize_name(wanted.name), extra)
            if each in result or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
                continue
            result.add(each)
            try:
                below = [Requirement(line) for line in metadata.requires(wanted.name) or []]
            except metadata.PackageNotFoundError:
                continue
            for requirement in below:
                if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                    requirement.marker = None  # it holds
                    todo.append(requirement)
    return frozenset(name for name, _ in result)


def extras_of_setup() -> list[str]:
    """The extras of `merton` that tools/setup.sh installs without `all`."""
    script = (ROOT / "tools" / "setup.sh").read_text(encoding="utf-8")
    (installed,) = re.findall(r"requirements .* -e '\.\[([\w,]+)\]' -e src/merton_studies$", script, re.MULTILINE)
    return str(installed).split(",")


def installed_by_setup() -> frozenset[str]:
    """Names of the distributions of `make setup`, from the lists that it reads."""
    library, studies = (project(file) for file in PROJECTS)
    lists = [(ROOT / "requirements" / name).read_text(encoding="utf-8") for name in ("ros.txt", "build.txt")]
    plain = [line for text in lists for line in text.splitlines() if re.match(r"\w", line)]
    asked = [line for line in studies["dependencies"] if not line.startswith("merton[")]
    extras = {extra for line in studies["dependencies"] for extra in Requirement(line).extras} | {*extras_of_setup()}
    asked += [line for extra in sorted(extras) for line in library["optional-dependencies"][extra]]
    return closure(*library["dependencies"], *asked, *plain)


def modules_beyond(names: frozenset[str]) -> frozenset[str]:
    """Top modules of installed distributions other than those named and Merton's own."""
    homes = metadata.packages_distributions()
    return frozenset(
        top
        for top, owners in homes.items()
        if not {canonicalize_name(owner) for owner in owners} & names and not top.startswith("merton")
    )


def hidden_modules() -> frozenset[str]:
    """Top modules that are installed here and that `make setup` does not bring."""
    return modules_beyond(installed_by_setup() | {"pip", "setuptools"})


def hiding(folder: Path) -> Path:
    """Write the hook into a folder, to stand in PYTHONPATH; gives the folder."""
    (folder / "sitecustomize.py").write_text(HOOK.format(hidden=set(hidden_modules())), encoding="utf-8")
    return folder
