"""The sources of the checkout as a graph of imports."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "merton" / "merton"
NODES = ROOT / "src" / "merton_nodes" / "merton_nodes"


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def imports(file: Path) -> frozenset[str]:
    """Every module and name a file imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide what is imported"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def files(folder: Path) -> list[Path]:
    """All Python files, at least one."""
    found = sorted(folder.rglob("*.py"))
    assert found, f"no sources in {folder}"
    return found


def dotted(file: Path) -> str:
    """The name under which a file of the library or the nodes is imported; for `__init__.py` the package's."""
    base = (LIBRARY if file.is_relative_to(LIBRARY) else NODES).parent
    parts = file.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
