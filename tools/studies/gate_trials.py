"""Trials for `merton iqa gate`: python tools/studies/gate_trials.py FOLDER --scenes 244. Goes on where it was stopped.

Writes FOLDER/trials.jsonl, a line a trial, and FOLDER/pictures/TRIAL/CAMERA_{reference,distorted}.png, its first
images. `--table FILE.csv` measures the pictures and writes the table that `merton iqa gate --trials` reads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from merton.experiment.local import LocalPorts
from merton.files import written_whole
from merton.perception.images import encode_image, read_image
from merton_studies.iqa.gate_table import ATTRIBUTES, DISAGREEMENT, measured, write_gate_table
from merton_studies.iqa.values import code_sha256
from merton_studies.iqa.watched_trials import design, watched

METRICS = ("psnr", "brisque", "blur_effect", "noise_sigma", "merton-nr")
"""In the table."""


def run_trials(folder: Path, scenes: int, part: int, parts: int) -> None:
    """Run the trials of a part of the scenes that are not done; the last line of a killed run may be cut."""
    file = folder / (f"trials-{part}.jsonl" if parts > 1 else "trials.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    file.write_text("".join(whole), encoding="utf-8")
    done = {json.loads(line)["trial"] for line in whole}
    cases = [case for case in design(scenes) if case.trial.case.seed % parts == part and case.trial.id not in done]
    began_s = time.monotonic()
    with LocalPorts() as ports, file.open("a", encoding="utf-8") as record:
        for number, case in enumerate(cases, start=1):
            row, images = watched(ports, case)
            pictures = folder / "pictures" / row.trial
            pictures.mkdir(parents=True, exist_ok=True)
            for camera, sides in images.items():
                for side, image in zip(("reference", "distorted"), sides, strict=True):
                    with written_whole(pictures / f"{camera}_{side}.png", durable=False) as picture:
                        picture.write(encode_image(image))
            record.write(json.dumps(row.as_json()) + "\n")
            record.flush()
            if number % 20 == 0:
                left_s = (time.monotonic() - began_s) * (len(cases) - number) / number
                print(f"{number} of {len(cases)}, about {left_s:.0f} s left", flush=True)


def kept_values(pictures: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The values of a trial's pictures; those of unchanged code are read from its folder."""
    kept = pictures / "values.json"
    content = json.loads(kept.read_text()) if kept.exists() else {"codes": {}, "values": {}}
    codes = {name: code_sha256(name) for name in metrics}
    wanted = [name for name in metrics if content["codes"].get(name) != codes[name]]
    if wanted:
        sides = [
            (read_image(file), read_image(file.with_name(file.name.replace("reference", "distorted"))))
            for file in sorted(pictures.glob("*_reference.png"))
        ]
        content["values"] |= measured(sides, wanted)
        content["codes"] |= {name: codes[name] for name in wanted}
        with written_whole(kept, durable=False) as target:
            target.write(json.dumps(content).encode())
    return {name: content["values"][name] for name in (*metrics, *ATTRIBUTES)}


def write_table(folder: Path, target: Path, metrics: Sequence[str]) -> None:
    """Measure the first images of the trials and write the table, in the order of the design."""
    trials = [json.loads(line) for file in sorted(folder.glob("trials*.jsonl")) for line in file.open(encoding="utf-8")]
    rows = []
    for number, trial in enumerate(
        sorted(trials, key=lambda each: (int(each["scene"].split(".")[1]), each["trial"])), 1
    ):
        pictures = folder / "pictures" / trial["trial"]
        words = {name: trial[name] for name in ("trial", "subject", "scene", "distortion", "level", "outcome")}
        rows.append(
            {
                **words,
                "undistorted": trial["undistorted"],
                **kept_values(pictures, metrics),
                **{name: trial[name] for name in DISAGREEMENT},
            }
        )
        if number % 100 == 0:
            print(f"measured {number} of {len(trials)}", flush=True)
    write_gate_table(target, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenes", type=int, default=244)
    parser.add_argument("--part", type=int, default=0, help="of --parts, which processes share")
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--table", type=Path, help="measure the pictures that are there, and write this CSV file")
    chosen = parser.parse_args(arguments)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.table:
        write_table(chosen.folder, chosen.table, METRICS)
    else:
        run_trials(chosen.folder, chosen.scenes, chosen.part, chosen.parts)


if __name__ == "__main__":
    main()
