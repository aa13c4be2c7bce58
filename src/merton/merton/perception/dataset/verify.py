"""The check of a dataset against its hashes."""

from __future__ import annotations

from pathlib import Path

from merton.perception.dataset import layout
from merton.perception.dataset.tables import read_table
from merton.progress import OnProgress, unseen


def verify(out: Path, on_progress: OnProgress = unseen) -> list[str]:
    """Hash every file of a dataset again; returns a sentence for each difference.

    Differences are files that are missing, changed, or in a folder of images without a row in a table.

    Args:
        out: the dataset.
        on_progress: called with (files done, files in all).

    Raises:
        InputError: there is no finished dataset, or a table cannot be read.
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        lines = (out / layout.SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise layout.unfinished(out) from None
    sums = {name: value for value, _, name in (line.partition("  ") for line in lines)}
    tables = (layout.MANIFEST, layout.REFERENCE_TABLE, layout.REFUSED)
    aligned = (layout.ALIGNMENT,) if layout.ALIGNMENT in sums else ()
    wrong = [_compared(out, name, sums.get(name, "")) for name in (*tables, *aligned)]
    if any(wrong):
        return [difference for difference in wrong if difference]  # wrong tables say nothing about images
    references = read_table(out / layout.REFERENCE_TABLE)
    rows = [*references, *read_table(out / layout.MANIFEST)]
    for done, row in enumerate(rows, 1):
        wrong.append(_compared(out, row["file"], row["sha256"]))
        on_progress(done, len(rows))
    known = {row["file"] for row in rows} | {f"{layout.RECORDS}/{row['id']}.json" for row in references}
    wrong += [f"{file} is not part of the dataset" for file in sorted(layout.files_of(out) - known)]
    return [difference for difference in wrong if difference]


def _compared(out: Path, file: str, sha256: str) -> str:
    found = layout.sha256_of(out / file)
    if found is None:
        return f"{file} is missing"
    return "" if found == sha256 else f"{file} has changed"
