"""Whose opinions a table has, in words for every page and line that shows numbers made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from merton.results.text import counted

KINDS = {"cognition": "VLM", "decision": "VLA"}
"""Stage to the kind of model whose opinions it has, unless they were imported."""


def is_imported(about: Mapping[str, Any]) -> bool:
    """Whether opinions come from a table of scores that was made elsewhere, by what they say of themselves."""
    return "imported" in about


def judges(about: Mapping[str, Any], stage: str) -> str:
    """The judges in a word or two: "VLMs", "VLAs", or "raters" for imported opinions."""
    return "raters" if is_imported(about) else f"{KINDS[stage]}s"


def whose(about: Mapping[str, Any], stage: str) -> str:
    """Whose opinions of a stage these are, such as "20 raters, imported from mos.csv" or "9 VLMs".

    Args:
        about: of the opinions, or of the sums of their subjects.
        stage: "cognition" or "decision".
    """
    names = about.get("subjects", {}).get(stage, [])
    if not is_imported(about):
        return counted(len(names), KINDS[stage])
    file = about["imported"]["file"]
    return f"{counted(len(names), 'rater')}, imported from {file}" if names else f"raters of {file}, which names none"
