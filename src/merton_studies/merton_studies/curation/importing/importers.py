"""A published benchmark made into a pool, and pools joined into one."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import merton
from merton.errors import InfrastructureError, InputError, UnknownNameError
from merton.files import UNFINISHED, file_sha256, locked_folder
from merton.progress import OnProgress, unseen
from merton_studies.curation.importing.columns import columns_of
from merton_studies.curation.importing.frames import FRAMES
from merton_studies.curation.importing.lines import OPEN_EQA, SQA3D, open_eqa, own_lines, sqa3d
from merton_studies.curation.importing.media import MediaFolder
from merton_studies.curation.importing.questions import questions_of
from merton_studies.curation.importing.tables import CsvTable, Table, parquet_table, saved_table
from merton_studies.curation.pool import ABOUT, MEDIA, Pool, media_file, read_pool, refuse_other, write_pool
from merton_studies.curation.question import BenchmarkSource, Question

FORMS = {
    "jsonl": "JSON Lines with the keys of a question (docs/studies/curation.md)",
    "csv": "a CSV or TSV file with a header",
    "parquet": "a Parquet file, or a folder of them, as lmms-eval's data sets on Hugging Face",
    "datasets": "a folder that the library datasets wrote with save_to_disk",
    "openeqa": "open-eqa-v0.json of OpenEQA, or its questions as JSON Lines",
    "sqa3d": "a folder with SQA3D's questions and annotations, or both as JSON Lines",
}
"""Name of a form to what it is."""
TABLES = ("csv", "parquet", "datasets")
"""Forms that are tables with named columns."""
BUILT_IN = {"openeqa": OPEN_EQA, "sqa3d": SQA3D}
"""Forms whose source is known."""


@dataclass(frozen=True)
class Imported:
    """A pool that was imported.

    Attributes:
        pool: of it.
        remarks: sentences about how it was read that a person should check.
    """

    pool: Pool
    remarks: tuple[str, ...]


def import_pool(
    form: str,
    path: Path,
    out: Path,
    source: BenchmarkSource | None = None,
    *,
    columns: Mapping[str, tuple[str, ...]] | None = None,
    split: str = "",
    pictures: Path | None = None,
    frames: int = FRAMES,
    on_progress: OnProgress = unseen,
) -> Imported:
    """Read a benchmark and write it as a pool; the same input again, also after a kill, gives the same bytes.

    Args:
        form: one of `FORMS`.
        path: of the file or folder.
        out: a new folder; one with the same pool is written again.
        source: the benchmark; OpenEQA and SQA3D describe themselves. None: the name of its file alone is known.
        columns: of a table: part of a question to the columns that hold it, where their names do not say.
        split: of several in a folder of tables.
        pictures: folder that paths of pictures and videos are relative to; with OpenEQA its folder of frames or videos.
            None: where the file is, and for OpenEQA no pictures.
        frames: of a video without stamps, at equal distances, the first and the last among them.
        on_progress: called with the number of questions read, and their total.

    Raises:
        InputError: an unknown form, a file that is not of it, or a row that is no question; with file and line or row.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: pyarrow is not installed, or PyAV, where there is a video.
    """
    if form not in FORMS:
        raise UnknownNameError("form", form, FORMS)
    source = BUILT_IN.get(form) or source or BenchmarkSource(name=path.resolve().stem)
    if form == "openeqa" and pictures:
        source = source.model_copy(update={"licence": f"{source.licence} (pictures: that of the scans)"})
    if form not in TABLES and (columns or split):
        raise InputError(f"the form {form} has no columns to name and no splits")
    with locked_folder(out, "merton curate import"):
        for draft in (out / MEDIA).glob(f"*{UNFINISHED}"):  # of a process that was killed
            draft.unlink()
        media = MediaFolder(out, pictures or (path if path.is_dir() else path.parent), frames)
        remarks: list[str] = []
        if form in TABLES:
            questions, files, remarks = _of_table(form, path, source, columns or {}, split, media, on_progress)
        else:
            read = {
                "jsonl": lambda: own_lines(path, source.name, media, on_progress),
                "openeqa": lambda: open_eqa(path, pictures, media, on_progress),
                "sqa3d": lambda: sqa3d(path, media, on_progress),
            }
            questions = read[form]()
            files = [path] if path.is_file() else sorted(path.glob("*.json"))
        made = {
            "merton": merton.__version__,
            "form": form,
            "inputs": {file.name: file_sha256(file) for file in files},
            "remarks": remarks,
            **media.frames.made(),
        }
        others = sorted({question.source for question in questions} - {source.name})
        sources = [source, *(source.model_copy(update={"name": name}) for name in others)]
        used = {question.source for question in questions}
        pool = Pool.of(questions, [one for one in sources if one.name in used], out, **made)
        _write(pool, out)
    return Imported(pool, tuple(remarks))


def join(pools: Sequence[Path], out: Path, on_progress: OnProgress = unseen) -> Pool:
    """One pool of several, their pictures copied; raises InputError if two have a question with one id."""
    read = [read_pool(folder) for folder in pools]
    sources: dict[str, BenchmarkSource] = {}
    for pool in read:
        for name, source in pool.sources.items():
            if sources.setdefault(name, source) != source:
                raise InputError(f"{pool.folder} describes the source {name!r} otherwise than a pool before it")
    made = {"merton": merton.__version__, "joined": [dict(pool.made) for pool in read]}
    joined = Pool.of([one for pool in read for one in pool.questions], sources.values(), out, **made)
    _check_hashes(joined)
    paths = {medium.path: pool.folder for pool in read for one in pool.questions for medium in one.media}
    with locked_folder(out, "merton curate join"):
        for number, path in enumerate(sorted(paths), 1):
            copy_medium(media_file(paths[path], path), out / path)
            on_progress(number, len(paths))
        _write(joined, out)
    return joined


def copy_medium(file: Path, target: Path) -> None:
    """Copy a picture whole, unless a file is there; raises InfrastructureError if it cannot be written."""
    if target.exists():
        return
    draft = target.with_name(f".{target.name}.draft")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, draft)
        draft.replace(target)
    except OSError as error:
        raise InfrastructureError(f"cannot write {target}: {error.strerror or error}") from None


def _of_table(
    form: str,
    path: Path,
    source: BenchmarkSource,
    given: Mapping[str, tuple[str, ...]],
    split: str,
    media: MediaFolder,
    on_progress: OnProgress,
) -> tuple[list[Question], list[Path], list[str]]:
    table: Table
    if form == "csv":
        table = CsvTable(path)
    else:
        table = parquet_table(path, split) if form == "parquet" else saved_table(path, split)
    columns = columns_of(table.kinds, given, form == "csv", str(table.files[0]))
    questions, answers = questions_of(table, columns, source.name, media, on_progress)
    held = [f"{part} from {name}" for part, name in columns.by_part.items()]
    held += [f"pictures from {', '.join(columns.pictures)}"] if columns.pictures else []
    remarks = [f"Columns: {', '.join(held)}."]
    if columns.lettered:
        remarks.append(f"The choices are the columns {', '.join(columns.lettered)}.")
    remarks += answers
    if columns.meta:
        remarks.append(f"Kept as meta, not shown to models: {', '.join(columns.meta)}.")
    if columns.left_out:
        remarks.append(f"Left out, because nested: {', '.join(columns.left_out)}.")
    return questions, list(table.files), remarks


def _check_hashes(joined: Pool) -> None:
    """Raises InputError if two pictures of different content have one path."""
    hashes: dict[str, str] = {}
    for question in joined.questions:
        for medium in question.media:
            if hashes.setdefault(medium.path, medium.sha256) != medium.sha256:
                raise InputError(f"two pools have different pictures called {medium.path}: import one of them again")


def _write(pool: Pool, out: Path) -> None:
    """Write a pool into a folder that is locked; raises InputError if it holds another."""
    if (out / ABOUT).exists():
        refuse_other(read_pool(out), pool.made)
    write_pool(pool, out)
