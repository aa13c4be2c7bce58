"""The built-in sample: rendered images of the embedded cell, and photographs that come with Python packages."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain, product
from pathlib import Path

from merton.config import dumps
from merton.files import refuse_filled
from merton.perception.dataset import layout
from merton.perception.dataset.intake import decode
from merton.perception.dataset.tags import TAG_FILES, Tags, read_tags
from merton.perception.images import encode_image
from merton.progress import OnProgress, unseen

SPLITS = ("test", "shift")
"""Splits of the scenes that are rendered: no model that comes with Merton was trained on one of them."""

_CAMERAS = {"wrist": "first_person", "top": "third_person", "side": "third_person"}

_OBJECTS = {
    "block": ("cube", "cylinder", "ball", "brick", "spool", "cone"),
    "container": ("mug", "bottle", "cup", "drawer"),
    "tool": ("button", "knob", "peg"),
}
"""Value of the tag `object` to the kinds of things that have it; food and living things do not occur in the cell."""

_PHOTOGRAPHS = Path(__file__).with_name("photographs.yaml")


def write_sample(out: Path, scenes: int, on_progress: OnProgress = unseen, *, with_photographs: bool = True) -> int:
    """Write the sample's references and their tag file into a new or empty folder; returns the number of images.

    Each varied scene (docs/use/scenes.md) is rendered through the three cameras of the embedded cell, and its pictures
    have its five tasks. The nine photographs are added if scikit-image and scikit-learn are installed.

    Args:
        out: the folder.
        scenes: number of scenes of each of `SPLITS`, from 0 on.
        on_progress: called with (rendered images done, rendered images in all) after every one.
        with_photographs: False for the rendered images alone.

    Raises:
        InputError: the folder is not empty.
        MissingDependencyError: this machine cannot render off screen.
    """
    refuse_filled(out)
    entries = {}
    rendered = len(SPLITS) * scenes * len(_CAMERAS)
    for number, (name, content, tags) in enumerate(
        chain(_rendered(scenes), _encoded_photographs() if with_photographs else ()), 1
    ):
        layout.write(out / name, content)
        entries[name] = {**asdict(tags), "tasks": list(tags.tasks)}
        if number <= rendered:
            on_progress(number, rendered)
    layout.write(out / TAG_FILES[0], dumps(entries, width=120).encode())
    return len(entries)


def _rendered(scenes: int) -> Iterator[tuple[str, bytes, Tags]]:
    # imported here: no other module of perception needs a simulator
    from merton.simulation.cameras import SceneCameras
    from merton.simulation.cell import SimulatedCell
    from merton.simulation.look import make_look
    from merton.simulation.varied import make_layout

    cell, cameras = SimulatedCell(), SceneCameras()
    try:
        for split, seed in product(SPLITS, range(scenes)):
            jobs = make_layout(split, seed).jobs
            scene = cell.reset(f"{split}-{next(iter(jobs))}", seed)
            is_plain = make_look(split, seed, ()).finishes["table"].texture == "plain"
            tasks = tuple(_sentence(job.command.instruction) for job in jobs.values())
            for camera, perspective in _CAMERAS.items():
                view = cameras.render(scene.task, seed, cell.qpos, camera)
                background = "room" if camera == "side" else "plain" if is_plain else "table"
                tags = Tags("simulation", perspective, _kind(scene.meant.object), background, tasks)
                yield f"{split}_{seed:02d}_{camera}.png", encode_image(view.color), tags
    finally:
        cameras.close()


def _kind(thing: str) -> str:
    """The tag `object` of the main object, here the thing of the easiest task: nothing else has its colour."""
    return next(kind for kind, shapes in _OBJECTS.items() if thing.split()[-1] in shapes)


def _sentence(instruction: str) -> str:
    return instruction[:1].upper() + instruction[1:]


def photographs() -> Iterator[tuple[Path, Tags]]:
    """The photographs of `photographs.yaml` whose package is installed, with their tags."""
    for name, tags in read_tags(_PHOTOGRAPHS).items():
        package, _, path = name.partition("/")
        module = importlib.util.find_spec(package)
        file = Path(module.origin).parent / path if module and module.origin else None
        if file and file.is_file():
            yield file, tags


def _encoded_photographs() -> Iterator[tuple[str, bytes, Tags]]:
    for file, tags in photographs():
        yield f"photo_{file.stem}.png", encode_image(decode(file.read_bytes())), tags
