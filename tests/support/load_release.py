"""Loads an exported folder with the packages `datasets` and `mlcroissant`, without a network; prints JSON.

A program of its own, because `datasets` reads its settings when it is imported: FOLDER CACHE.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path


def text(value: object) -> str:
    """A text that mlcroissant gives as bytes or as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def main(folder: Path, cache: Path) -> None:
    """Print rows of every config and split, as `datasets` and as mlcroissant's filters find them; sha256 of the pixels
    of every reference; and what the validator says."""
    os.environ.update(HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1", HF_HOME=str(cache))
    import datasets
    import mlcroissant
    import numpy as np

    datasets.disable_progress_bars()
    rows, types = {}, {}
    configs = datasets.get_dataset_config_names(str(folder))
    for name in configs:
        loaded = datasets.load_dataset(str(folder), name)
        rows[name] = {split: len(loaded[split]) for split in loaded}
        types[name] = {key: str(kind) for key, kind in next(iter(loaded.values())).features.items()}
    default = datasets.load_dataset(str(folder))
    pixels = {
        row["id"]: hashlib.sha256(np.asarray(row["image"]).tobytes()).hexdigest()
        for split in default.values()
        for row in split
    }
    question = datasets.load_dataset(str(folder), "questions", split="test")[0]
    file = str(folder / "croissant.json")
    metadata = mlcroissant.Dataset(file).metadata
    filtered = {}
    for name in configs:
        filtered[name] = {
            # a filter changes the metadata that it was given: each begins anew
            split: sum(
                text(row[f"{name}/split"]) == split
                for row in mlcroissant.Dataset(file).records(name, filters={f"{name}/split": split})
            )
            for split in rows[name]
        }
    found = {
        "rows": rows,
        "types": types,
        "pixels": pixels,
        "filtered": filtered,
        "question": [image.size for image in question["images"]],
        "errors": sorted(metadata.ctx.issues.errors),
        "warnings": sorted(metadata.ctx.issues.warnings),
        "record_sets": [one.id for one in metadata.record_sets],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
