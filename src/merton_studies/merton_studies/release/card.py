"""The card of a published dataset: README.md with the front matter that the Hugging Face hub reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import merton
from merton.config import dumps
from merton.pages.cards import markdown_table, plain, size_category
from merton_studies.release.licences import Licence
from merton_studies.release.part import DatasetPart
from merton_studies.release.shards import Written
from merton_studies.release.table import TEST_SHARE

README, CROISSANT, LEFT_OUT, SUMS = "README.md", "croissant.json", "LEFT_OUT.csv", "SHA256SUMS"
_TAGS = ("robotics", "embodied-ai", "image-quality-assessment", "merton")


@dataclass(frozen=True)
class About:
    """The authors' statement about a dataset.

    Attributes:
        name: of the dataset; "owner/name" where its place on the hub is known.
        licence: of the whole.
        authors: to be cited, in their order.
        date: of publication, ISO 8601; "" if it is not said.
        version: such as "1.0.0".
    """

    name: str
    licence: Licence
    authors: tuple[str, ...] = ()
    date: str = ""
    version: str = "1.0.0"

    @property
    def title(self) -> str:
        """The name without its owner."""
        return self.name.rpartition("/")[2]

    @property
    def repository(self) -> str:
        """Owner and name on the hub, with a word to be replaced where the owner is not known."""
        return self.name if "/" in self.name else f"OWNER/{self.name}"

    @property
    def citation(self) -> str:
        """An entry for BibTeX."""
        key = "".join(sign if sign.isalnum() else "_" for sign in self.title).lower()
        parts = [f"title = {{{{{self.title}}}}}", f"version = {{{self.version}}}"]
        if self.authors:
            parts.append(f"author = {{{' and '.join(self.authors)}}}")
        if self.date:
            parts.append(f"year = {{{self.date[:4]}}}")
        parts.append(f"note = {{Made with Merton {merton.__version__}}}")
        return f"@misc{{{key},\n  " + ",\n  ".join(parts) + "\n}"


def card(about: About, parts: Sequence[DatasetPart], tables: Sequence[Written]) -> str:
    """The text of the card; the same content gives the same text."""
    left_out = [entry for part in parts for entry in part.left_out]
    made = [f"- {sentence}" for part in parts for sentence in part.made]
    pieces = [
        f"---\n{dumps(_front(about, tables))}---\n",
        f"# {plain(about.title)}\n",
        "Made with Merton, which measures how well embodied AI can use what it sees: pictures are distorted, models "
        "answer and act on them, and every score is against the undistorted ones.\n",
        f"{_summary(tables)} Licence: {about.licence.spdx}. Each file has its SHA-256 in {SUMS}.\n",
        "## Contents\n",
        _contents(tables),
        _load(about, tables),
        "## How it was made\n",
        "\n".join(made) + "\n",
        "## Splits\n",
        f"`train` and `test` are split by scene: all rows about a scene are in one split, in every table. A scene is "
        f"in `test` if a hash of its name is below {TEST_SHARE:.0%} of the range, so it stays there in later versions. "
        "Tables of results, ratings, boards and questions have the one split `test`: nothing should be trained on "
        "them.\n",
        "## Fields\n",
        *(_fields(one) for one in tables),
        "## Floors\n",
        _floors(parts),
        "## Sources and licences\n",
        _sources(parts),
        f"{len(left_out)} entries are left out: see {LEFT_OUT}.\n" if left_out else "Nothing is left out.\n",
        "## People in the data\n",
        "\n".join(f"- {sentence}" for sentence in _privacy(parts)) + "\n",
        "## Balance, limits and biases\n",
        _shares(parts),
        "\n".join(f"- {sentence}" for sentence in _limits(parts)) + "\n",
        "## Citation\n",
        f"```bibtex\n{about.citation}\n```\n",
        "## Provenance: versions, seeds, hashes\n",
        markdown_table(["what", "value"], [[plain(name), plain(value)] for name, value in _provenance(parts)]),
    ]
    return "\n".join(piece for piece in pieces if piece)


def _front(about: About, tables: Sequence[Written]) -> dict[str, Any]:
    names = {one.table.name for one in tables}
    categories = ["robotics"]
    categories += ["image-classification"] if "images" in names else []
    categories += ["visual-question-answering"] if names & {"annotations", "questions"} else []
    configs = [
        {
            "config_name": one.table.name,
            **({"default": True} if one is tables[0] else {}),
            "data_files": [{"split": split, "path": f"{one.table.name}/{split}-*.parquet"} for split in one.splits],
        }
        for one in tables
    ]
    return {
        "pretty_name": about.title,
        "license": about.licence.hub_id,
        "language": ["en"],
        "task_categories": categories,
        "size_categories": [size_category(max(one.rows() for one in tables))],
        "tags": list(_TAGS),
        "configs": configs,
        "dataset_info": [_info(one) for one in tables],
    }


def _info(one: Written) -> dict[str, Any]:
    splits = [
        {"name": split, "num_bytes": one.in_memory[split], "num_examples": one.rows(split)} for split in one.splits
    ]
    return {
        "config_name": one.table.name,
        "features": [field.in_card for field in one.table.fields],
        "splits": splits,
        "download_size": sum(shard.size for shard in one.shards),
        "dataset_size": sum(one.in_memory.values()),
    }


def _summary(tables: Sequence[Written]) -> str:
    return f"{', '.join(f'{one.rows()} rows of {one.table.name}' for one in tables)}."


def _contents(tables: Sequence[Written]) -> str:
    rows = []
    for one in tables:
        splits = ", ".join(f"{split} {one.rows(split)}" for split in one.splits)
        size = sum(shard.size for shard in one.shards)
        rows.append([f"`{one.table.name}`", one.table.title, splits, str(len(one.shards)), f"{size / 1e6:.2f}"])
    return markdown_table(["config", "a row is", "rows", "files", "MB"], rows)


def _load(about: About, tables: Sequence[Written]) -> str:
    first = tables[0]
    call = f'load_dataset("{about.repository}", "{first.table.name}", split="{first.splits[0]}")'
    return (
        f"```python\nfrom datasets import load_dataset\n\nrows = {call}   # or the folder in place of the name\n```\n"
    )


def _fields(one: Written) -> str:
    rows = [[f"`{field.name}`", field.words, field.about] for field in one.table.fields]
    return f"### {one.table.name}\n\n{markdown_table(['field', 'type', 'meaning, unit, range'], rows)}"


def _floors(parts: Sequence[DatasetPart]) -> str:
    floors = [(name, value) for part in parts for name, value in part.floors]
    if not floors:
        return "No score here has a measured floor.\n"
    text = "What doing nothing, guessing or chance scores: only what is above it says something.\n\n"
    return text + markdown_table(["score", "floor"], [[plain(name), plain(value)] for name, value in floors])


def _sources(parts: Sequence[DatasetPart]) -> str:
    lines = [line for part in parts for line in part.sources]
    if not lines:
        return "All of it was made by the authors.\n"
    rows = [[plain(one.name), one.rows, plain(one.licence), plain(one.attribution)] for one in lines]
    return markdown_table(["source", "how much", "licence", "to be named"], rows)


def _privacy(parts: Sequence[DatasetPart]) -> list[str]:
    found = [sentence for part in parts for sentence in part.privacy]
    return list(dict.fromkeys(found)) or ["The tables hold no pictures of people, and no names."]


def _shares(parts: Sequence[DatasetPart]) -> str:
    rows = [[plain(name), plain(counts)] for part in parts for name, counts in part.shares]
    return markdown_table(["rows", "counts"], rows) if rows else ""


def _limits(parts: Sequence[DatasetPart]) -> list[str]:
    return list(dict.fromkeys(sentence for part in parts for sentence in part.limits))


def _provenance(parts: Sequence[DatasetPart]) -> list[tuple[str, str]]:
    found = [("exported by Merton", merton.__version__)]
    return found + [(name, value) for part in parts for name, value in part.provenance if value not in ("", "None")]
