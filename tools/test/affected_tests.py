"""The files of tests that a change can reach, read from the graph of imports.

    python tools/test/affected_tests.py [REVISION]

prints them, one a line, for all that differs from where the branch left REVISION (its upstream, else `HEAD`) and for
what is not committed. `make quick CHANGED=1` runs them.

A file reaches those that it imports, at its top or inside a function; those whose names stand in its texts, as
registries, entry points and programs in texts name modules; the data that it names, `cell.yaml`; and that of its own
package, `monitor/page/monitor.js`. A test of a command reaches what that command imports; one that names no command,
and one that starts the whole graph, all of them. Tests that go through folders of the checkout are run for every
change.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from sources import LIBRARY, NODES, PACKAGES, ROOT, STUDIES, content, dotted, imports, tree

TESTS = ROOT / "tests"
COMMAND = LIBRARY / "cli" / "main.py"
TABLES = (COMMAND, STUDIES / "cli" / "commands.py")
"""The files whose `COMMANDS` name commands."""
STARTS_EVERYTHING = ("system", "neighbours")
"""Folders of tests that start processes of the whole graph."""
_MODULE = re.compile(r"\bmerton(?:_nodes|_studies)?(?:\.\w+)+")
_GOES_THROUGH_CHECKOUT = re.compile(
    r"(\b[A-Z]{4,}\b|__file__|package|resource).*\.r?glob\(|^from sources import", re.MULTILINE
)
_WORD = re.compile(r"[\w.-]+")


def git(*arguments: str) -> list[str]:
    """Lines that git prints; an empty list if it refuses."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed(revision: str | None = None) -> list[Path]:
    """Files that differ from where this branch left `revision`, or its upstream, or `HEAD`; deleted ones too."""
    if revision and not git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        sys.exit(f"affected_tests: git knows no revision {revision!r}")
    base = git("merge-base", "HEAD", revision or "@{upstream}") or ["HEAD"]
    names = [*git("diff", "--name-only", "--no-renames", base[0]), *git("ls-files", "--others", "--exclude-standard")]
    return [ROOT / name for name in dict.fromkeys(names)]


class Sources:
    """All files of the checkout, and which of them each Python file can reach."""

    def __init__(self, gone: Iterable[Path] = ()) -> None:
        """`gone`: files that were deleted; what names them is reached by their loss."""
        present = (ROOT / name for name in git("ls-files", "-co", "--exclude-standard"))
        self.all = [*gone, *(path for path in present if path.exists())]
        self.python = [file for file in self.all if file.suffix == ".py" and file.exists()]
        self._direct: dict[Path, frozenset[Path]] = {}
        self.data = [file for file in self.all if file.suffix != ".py" and "docs" not in file.relative_to(ROOT).parts]

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Name under which a file is imported to the file."""
        found = {}
        for file in self.all:
            if file.suffix == ".py":
                in_package = any(file.is_relative_to(package) for package in PACKAGES)
                found[dotted(file) if in_package else file.stem] = file
        return found

    @cached_property
    def names_of_data(self) -> dict[str, list[Path]]:
        """Name of a data file to the files of that name."""
        found: dict[str, list[Path]] = {}
        for file in self.data:
            found.setdefault(file.name, []).append(file)
        return found

    @cached_property
    def data_of_packages(self) -> dict[Path, list[Path]]:
        """Folder of a package to the data in it: pages, templates and weights that its modules may serve by folder."""
        packages = {file.parent for file in self.python if file.name == "__init__.py"}
        found: dict[Path, list[Path]] = {}
        for file in self.data:
            home = next((folder for folder in file.parents if folder in packages), None)
            if home is not None:
                found.setdefault(home, []).append(file)
        return found

    @cached_property
    def commands(self) -> dict[str, Path]:
        """First word of each command of `merton` to the file that holds it."""
        return {name: home for table in TABLES for name, home in self._commands_of(table).items()}

    def _commands_of(self, table: Path) -> dict[str, Path]:
        homes = {}  # name in the table's file to the file that it is from
        for node in ast.walk(tree(table)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    home = self.modules.get(f"{node.module}.{alias.name}") or self.modules.get(node.module or "")
                    if home is not None:
                        homes[alias.name] = home
        found = {}
        for node in ast.walk(tree(table)):
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "COMMANDS":
                for row in node.value.elts:  # type: ignore[attr-defined]
                    what = row.elts[2].value if isinstance(row.elts[2], ast.Attribute) else row.elts[2]
                    found[row.elts[1].value] = homes.get(what.id, table)
        assert found, f"{table} has no table COMMANDS"
        return found

    def of_module(self, name: str, below: bool = False) -> Iterator[Path]:
        """The file of a module or of the module that has the name, and of the packages around it.

        Args:
            below: all modules of the package, if the name is that of one.
        """
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            if (file := self.modules.get(".".join(parts[:count]))) is not None:
                yield file
        if below and (package := self.modules.get(name)) is not None and package.name == "__init__.py":
            yield from (file for file in self.python if file.is_relative_to(package.parent))

    def direct(self, file: Path) -> frozenset[Path]:
        """The files that a Python file imports or names; of `TABLES` without the commands."""
        if file not in self._direct:
            self._direct[file] = self._find_direct(file)
        return self._direct[file]

    def _find_direct(self, file: Path) -> frozenset[Path]:
        found = {one for name in imports(file) for one in self.of_module(name)}
        found |= set(self.data_of_packages.get(file.parent, ()))
        starts_nodes = file.is_relative_to(TESTS)  # the library knows nodes by name, and starts them for those who ask
        for text in content(file).texts:
            for name in _MODULE.findall(text):
                if starts_nodes or not name.startswith("merton_nodes"):
                    found |= set(self.of_module(name.rstrip("."), below=True))
            for word in _WORD.findall(text):
                found |= set(self.names_of_data.get(word, ()))
                if starts_nodes and word in self.nodes:
                    found.add(self.nodes[word])
        return frozenset(found - set(self.commands.values()) if file in TABLES else found)

    @cached_property
    def nodes(self) -> dict[str, Path]:
        """Name of each program of a node to its file."""
        return {file.stem: file for file in self.python if file.is_relative_to(NODES) and file.stem.endswith("_node")}

    def reached(self, start: Iterable[Path]) -> set[Path]:
        """All files that these can reach, themselves among them."""
        found: set[Path] = set()
        waiting = list(start)
        while waiting:
            file = waiting.pop()
            if file not in found:
                found.add(file)
                if file.suffix == ".py" and file.exists():
                    waiting += self.direct(file)
        return found

    def reached_by_test(self, test: Path) -> set[Path]:
        """All files that a file of tests can reach, with the conftest files above it."""
        above = [folder / "conftest.py" for folder in test.parents if folder.is_relative_to(TESTS)]
        start = {test, *(file for file in above if file.exists())}
        if test.relative_to(TESTS).parts[0] in STARTS_EVERYTHING:
            return self.reached({*start, COMMAND, *self.commands.values(), *self.modules_of(NODES)})
        found = self.reached(start)
        own = [file for file in found if file.is_relative_to(TESTS)]
        words = {word for file in own for text in content(file).texts for word in _WORD.findall(text)}
        runs_programs = COMMAND in found or any("subprocess" in imports(file) for file in own)
        if runs_programs:
            named = [home for command, home in self.commands.items() if command in words]
            is_about_all = any(f"{dotted(COMMAND)}.COMMANDS" in imports(file) for file in own)
            found |= self.reached(named if named and not is_about_all else self.commands.values())
        return found

    @cached_property
    def of_tests(self) -> dict[Path, set[Path]]:
        """Each file of tests and the files that it can reach."""
        tests = (file for file in self.modules_of(TESTS) if file.name.startswith("test_"))
        return {test: self.reached_by_test(test) for test in tests}

    def modules_of(self, folder: Path) -> list[Path]:
        """All Python files below a folder."""
        return [file for file in self.python if file.is_relative_to(folder)]


def affected(changes: Iterable[Path], sources: Sources | None = None) -> list[Path]:
    """The files of tests that these changed files can reach; all of them for a file of data that no file names."""
    changes = set(changes)
    if not changes:
        return []
    sources = sources or Sources([file for file in changes if not file.exists()])
    in_docs = {file for file in changes if file.suffix == ".md" or "docs" in file.relative_to(ROOT).parts}
    unnamed = changes - in_docs - set().union(*sources.of_tests.values())
    if any(file.suffix != ".py" for file in unnamed):
        return list(sources.of_tests)
    return [test for test, reached in sources.of_tests.items() if reached & changes or goes_through_checkout(test)]


def goes_through_checkout(test: Path) -> bool:
    """Whether a file of tests looks at whole folders of the checkout: any change may concern it."""
    return _GOES_THROUGH_CHECKOUT.search(test.read_text(encoding="utf-8")) is not None


def main() -> None:
    """Print the files of tests that the change reaches."""
    changes = changed(*sys.argv[1:2])
    found = affected(changes)
    print(f"{len(changes)} changed files reach {len(found)} files of tests", file=sys.stderr)
    print("\n".join(str(file.relative_to(ROOT)) for file in found))


if __name__ == "__main__":
    main()
