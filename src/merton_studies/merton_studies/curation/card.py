"""The card of a curated benchmark: README.md with the front matter that Hugging Face reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from merton.config import dumps
from merton.files import write_file
from merton.pages.cards import markdown_table, plain, size_category
from merton.pages.words import flat
from merton.results.text import one_line
from merton_studies.curation.curated import CARD, Curated, read_curated
from merton_studies.curation.taxonomy import OTHER

_LOAD = """```python
from pathlib import Path
from merton_studies.curation.pool import read_pool

pool = read_pool(Path("."))              # this folder
question = pool.questions[0]
pictures = pool.images(question)         # (height, width, 3) uint8 each
```

Without Merton: `questions.parquet` has a row for each question (`id`, `source`, `text`, `answer_kind`, `answer`,
`also`, `choices`, `unit`, `media`, `video`, `situation`, `scene`, `dimension`, `twin_of`, `meta`); `media` and `meta`
are JSON, and the paths in `media` lie in this folder; `time_s` is that of a frame in its video. The
dimension of a question is `meta["assigned"]`."""


def write_card(folder: Path) -> Path:
    """Write README.md into the folder of a curated benchmark, from its other files; returns its path.

    Raises:
        InputError: a file is missing or damaged.
        InfrastructureError: the card cannot be written.
    """
    write_file(folder / CARD, card(read_curated(folder)).encode("utf-8", "replace"))
    return folder / CARD


def card(curated: Curated) -> str:
    """The text of the card: front matter, then what a person needs to know before using the questions."""
    count = len(curated.pool.questions)
    parts = [
        f"---\n{dumps(_front(curated))}---\n",
        f"# {count} questions in {len(curated.rows)} dimensions\n",
        f"{count} of {curated.total} questions, kept by `merton curate build` (the method is A2Eval's): each question "
        "is assigned to one dimension by votes, and of each dimension different questions are kept.\n",
        "## Sources\n",
        _sources(curated),
        "## Dimensions\n",
        f"Taxonomy `{plain(curated.taxonomy.name)}`. {one_line(curated.taxonomy.origin, 400)}\n",
        _dimensions(curated),
        "## Balance and votes\n",
        _balance(curated),
        "## How to load\n",
        f"{_LOAD}\n",
        "## Limits\n",
        _limits(curated),
        "## Provenance\n",
        markdown_table(["what", "value"], [[plain(name), plain(value)] for name, value in flat(curated.made)]),
    ]
    return "\n".join(parts)


def _front(curated: Curated) -> dict[str, Any]:
    licences = sorted({source.licence for source in curated.pool.sources.values() if source.licence})
    one = licences[0].lower() if len(licences) == 1 and not curated.unlicensed else "other"
    count = len(curated.pool.questions)
    tasks = ["visual-question-answering"]
    if any(question.answer_kind == "choice" for question in curated.pool.questions):
        tasks.append("multiple-choice")
    return {
        "pretty_name": f"Curated benchmark of {count} questions",
        "license": one if " " not in one else "other",
        "language": ["en"],
        "task_categories": tasks,
        "size_categories": [size_category(count)],
        "tags": ["embodied-ai", "robotics", "merton"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "questions.parquet"}]}],
    }


def _sources(curated: Curated) -> str:
    kept = Counter(question.source for question in curated.pool.questions)
    rows = [
        [
            plain(name),
            str(kept[name]),
            plain(source.licence) or "**none given**",
            plain(source.url),
            plain(source.citation),
        ]
        for name, source in curated.pool.sources.items()
    ]
    text = markdown_table(["source", "kept", "licence", "page", "citation"], rows)
    if curated.unlicensed:
        names = ", ".join(plain(source.name) for source in curated.unlicensed)
        text += f"\n**Pictures without a licence: {names}.** Do not pass them on before their licence is known.\n"
        for source in curated.unlicensed:
            files = sorted(
                {medium.path for one in curated.pool.questions if one.source == source.name for medium in one.media}
            )
            text += f"\nOf {plain(source.name)}: {len(files)} files, {files[0]} to {files[-1]}.\n"
    return text


def _dimensions(curated: Curated) -> str:
    rows = [
        [
            f"`{row.dimension.name}`",
            plain(row.dimension.title),
            plain(row.dimension.definition),
            str(row.assigned),
            str(row.kept),
            "" if row.share is None else f"{row.share:.2f}",
            str(row.contested),
        ]
        for row in curated.rows
    ]
    rows.append([f"`{OTHER}`", "", "needs none of these", str(curated.balance.assigned.get(OTHER, 0)), "0", "", ""])
    return markdown_table(
        ["name", "title", "definition", "in the pool", "kept", "mean share of votes", "contested"], rows
    )


def _balance(curated: Curated) -> str:
    share = float(curated.assignment.share.mean()) if curated.total else 0.0
    voters = curated.assignment.voters
    invalid, unvoted = curated.balance.invalid, curated.balance.unvoted
    lost = f" {invalid} votes were not valid, and {unvoted} questions have no valid vote." if invalid else ""
    return (
        f"The entropy of the dimensions is {curated.balance.entropy:.3f} in the pool and {curated.entropy_kept:.3f} in "
        f"what is kept; 1 is even. {len(voters)} voters ({', '.join(map(plain, voters))}) gave the chosen dimension "
        f"{100 * share:.0f} % of their votes on average; {curated.balance.contested} of {curated.total} questions had "
        f"no majority in the first round.{lost}\n"
    )


def _limits(curated: Curated) -> str:
    answers = sum(not question.answer for question in curated.pool.questions)
    scenes = len({question.unit_of_intervals for question in curated.pool.questions})
    lines = [
        "- Which dimension a question needs is what the voters say. How far they agree with people is measured on "
        "other questions (docs/studies/curation.md of Merton).",
        f"- The questions are about {scenes} scenes. Intervals of scores must be clustered by scene.",
        "- A score on few questions says less: with n questions a share is known to about 1/sqrt(n).",
        "- The sources' own licences and faults hold for the questions taken from them.",
    ]
    if answers:
        lines.append(f"- {answers} questions have no answer and cannot be scored.")
    return "\n".join(lines) + "\n"
