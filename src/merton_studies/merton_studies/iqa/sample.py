"""The sample that comes with Merton: 9,000 distorted pictures of the simulated cell, whose opinions are in the package.

The pictures are made on the user's machine, from the scenes, types, levels and seeds that were scored; only the scores
of the subjects are stored. docs/studies/quality.md tells how both tables were made.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from merton.perception.dataset import build, layout, tables, write_sample
from merton.perception.dataset.tags import TAG_FILES
from merton.progress import Step, quiet

SUBJECTS = Path(__file__).with_name("sample_subjects.parquet")
"""A row for each subject and picture: sums over the five tasks (`merton_studies.opinions.opinion`)."""
MANIFEST = Path(__file__).with_name("sample_manifest.parquet")
"""A row for each picture: type, level, seed, and the sha256 of the one that was scored."""
SCENES = 50
"""Of each of the splits test and shift, with three cameras each: 300 references."""


def make_sample(out: Path, step: Step = quiet) -> tuple[int, int]:
    """Render and distort the pictures of the sample; after a kill, the same call goes on.

    Args:
        out: folder of the dataset; the undistorted pictures lie in "<out>-references" beside it.
        step: shows the progress.

    Returns:
        How many of the distorted pictures equal the scored ones bit by bit, and how many there are. Another graphics
        driver may differ in the last bit of some pixels.

    Raises:
        InputError: the folder holds something else.
        InfrastructureError: the folder cannot be written.
        MissingDependencyError: pyarrow or the simulator is not installed, or this machine cannot render off screen.
    """
    references = out.with_name(f"{out.name}-references")
    if not (references / TAG_FILES[0]).exists():  # written last
        shutil.rmtree(references, ignore_errors=True)
        with step("render pictures") as on_progress:
            write_sample(references, SCENES, on_progress, with_photographs=False)
    with step("distort each 30 times") as on_progress:
        build(references, out, like=MANIFEST, on_progress=on_progress)
    scored = {_key(row): row["sha256"] for row in tables.read_table(MANIFEST)}
    made = {_key(row): row["sha256"] for row in tables.read_table(out / layout.MANIFEST)}
    return sum(made[key] == value for key, value in scored.items()), len(scored)


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return row["reference_id"], row["distortion"], row["level"]
