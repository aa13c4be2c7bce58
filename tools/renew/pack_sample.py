"""Puts the opinions of a dataset of the sample into the package: `tools/renew/pack_sample.py DATASET OPINIONS`.

OPINIONS is a folder that `merton study opinions` wrote. The images stay out: their manifest is enough to make them
again.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet

from merton.perception.dataset import layout
from merton_studies.iqa import sample
from merton_studies.opinions.opinion import SUBJECTS

COLUMNS = ["reference_id", "distortion", "level", "seed", "sha256"]


def main() -> None:
    """Write both tables, and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("opinions", type=Path)
    given = parser.parse_args()
    shutil.copyfile(given.opinions / SUBJECTS, sample.SUBJECTS)
    scored = pyarrow.parquet.read_table(sample.SUBJECTS, columns=["reference_id"])["reference_id"]
    manifest = pyarrow.parquet.read_table(given.dataset / layout.MANIFEST, columns=COLUMNS)
    manifest = manifest.filter(pyarrow.compute.is_in(manifest["reference_id"], scored.unique()))
    pyarrow.parquet.write_table(manifest.replace_schema_metadata({}), sample.MANIFEST, compression="zstd")
    for file in (sample.SUBJECTS, sample.MANIFEST):
        print(f"{file.name}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
