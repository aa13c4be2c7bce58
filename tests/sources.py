"""The sources of the checkout as a graph of imports."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "merton" / "merton"
STUDIES = ROOT / "src" / "merton_studies" / "merton_studies"
NODES = ROOT / "src" / "merton_nodes" / "merton_nodes"
PACKAGES = (LIBRARY, STUDIES, NODES)
PROJECTS = [ROOT / "pyproject.toml", STUDIES.parent / "pyproject.toml"]


@cache
def project(file: Path) -> dict[str, Any]:
    """The table [project] of a pyproject.toml, and its dependency groups under "groups"."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return {**content["project"], "groups": content.get("dependency-groups", {})}


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Content:
    """What a Python file imports, at its top or inside a function, and its texts without the docstrings.

    Attributes:
        attributes: used on a name or on an attribute, such as "csv.writer"; "parquet.write_table" of a longer chain.
    """

    imports: frozenset[str]
    attributes: frozenset[str]
    texts: tuple[str, ...]


@cache
def content(file: Path) -> Content:
    """Both by one walk, which takes most of the time of all that looks at the checkout."""
    imported: set[str] = set()
    attributes: set[str] = set()
    docstrings: set[int] = set()
    texts: list[ast.Constant] = []
    for node in ast.walk(tree(file)):
        match node:
            case ast.Import():
                imported |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                assert node.level == 0, f"{file}: relative imports hide what is imported"
                imported |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attribute):
                attributes.add(f"{owner}.{attribute}")
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.body and isinstance(node.body[0], ast.Expr):
                    docstrings.add(id(node.body[0].value))
            case ast.Constant(value=str()):
                texts.append(node)
    return Content(
        frozenset(imported),
        frozenset(attributes),
        tuple(str(node.value) for node in texts if id(node) not in docstrings),
    )


def imports(file: Path) -> frozenset[str]:
    """Every module and name a file imports, at its top or inside a function."""
    return content(file).imports


def files(folder: Path) -> list[Path]:
    """All Python files, at least one."""
    found = sorted(folder.rglob("*.py"))
    assert found, f"no sources in {folder}"
    return found


def dotted(file: Path) -> str:
    """The name under which a file of a package of `PACKAGES` is imported; for `__init__.py` the package's."""
    base = next(package.parent for package in PACKAGES if file.is_relative_to(package))
    parts = file.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
