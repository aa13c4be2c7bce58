"""The pool of the cell: scenes worked through in parallel, and the questions made of their facts.

The work on a scene is one file, written whole after its pictures; a further call goes on after the scenes that are
there. Nothing depends on the number of processes or on interruptions.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from merton.config import Model, loads
from merton.errors import InputError, require
from merton.files import claim_folder, written_whole
from merton.processes import carried_out, resumable_work
from merton.progress import OnProgress, unseen
from merton.seeding import generator
from merton_studies.curation.cell.choosing import SHARES, TWIN_SHARE, Found, chosen
from merton_studies.curation.cell.fact import Fact
from merton_studies.curation.cell.wording import sources, worded
from merton_studies.curation.pool import ABOUT, MEDIA, Pool, read_pool, refuse_other, write_pool
from merton_studies.curation.question import Medium, Question

SPLITS = ("test", "shift")
"""Splits of the scenes; no model that comes with Merton was trained on one of them."""
_QUESTIONS_A_SCENE = 15
_LARGEST, _LARGEST_SEED = 100_000, 1_000_000
_SCENES, _SETTINGS = ".scenes", ".unfinished.json"
_FORM = 1
"""Of the scenes and of the choice of facts; an unfinished pool of another form is not continued."""
_BY_THE_ROBOT = (
    "robot_side", "robot_nearer", "robot_behind", "nearest_robot", "furthest_robot", "from_base",
    "push", "push_falls", "push_meets", "moved_where",
)  # fmt: skip
"""Families that no reader can answer who does not see where the robot stands."""
_FACTS_OF_A_FAMILY = 6
"""Facts that a scene offers of each family: pairs and triples of things make hundreds."""


class Piece(Model):
    """The work on a scene: its facts, and the hash of each picture."""

    scene: str
    facts: tuple[Fact, ...]
    pictures: dict[str, str]


def make_cell_pool(
    out: Path,
    questions: int = 3000,
    seed: int = 0,
    on_progress: OnProgress = unseen,
    workers: int | None = None,
) -> Pool:
    """Render a pool of questions with exact answers, or continue one that was interrupted; same arguments, same bytes.

    Every answer is read from the simulator, none from pixels. Each question has the dimension that it was made for, its
    family in `meta["family"]`, its scene, and `twin_of` if it repeats another.

    Args:
        out: the folder of the pool: new, empty, or one of the same arguments.
        questions: how many; `SHARES` of each dimension, of which `TWIN_SHARE` are planted repetitions.
        seed: all choices follow from it.
        on_progress: called with (scenes done, scenes in all).
        workers: number of processes; the cores that this process may use if None.

    Raises:
        InputError: a wrong argument, or a folder with other content.
        InfrastructureError: the folder cannot be written, or a worker was killed; the same call goes on.
        MissingDependencyError: the simulator or pyarrow is missing, or this machine cannot draw off screen.
    """
    if not 1 <= questions <= _LARGEST:
        raise InputError(f"a pool of the cell has 1 to {_LARGEST:,} questions, got {questions}")
    if not 0 <= seed <= _LARGEST_SEED:
        raise InputError(f"the seed must be a whole number from 0 to {_LARGEST_SEED:,}, got {seed}")
    require("merton.simulation.tabletop", "sim", "a pool of the cell")
    made = {
        "maker": "merton curate cell", "form": _FORM, "size": questions, "seed": seed,
        "shares_percent": SHARES, "twin_share": TWIN_SHARE, "mujoco": version("mujoco"),
    }  # fmt: skip
    with resumable_work(out, "merton curate cell"):
        if (out / ABOUT).is_file():
            return _finished(out, made)
        claim_folder(out / _SETTINGS, made, "an unfinished pool")
        for folder in (_SCENES, MEDIA):
            (out / folder).mkdir(exist_ok=True)
        count = max(2, math.ceil(questions / _QUESTIONS_A_SCENE))
        names = [(SPLITS[number % 2], number // 2 + _LARGEST * seed) for number in range(count)]
        pieces = _worked(out, names, seed, workers, on_progress)
        pool = _assembled(out, pieces, questions, seed, made)
        _sweep(out, pool)
        write_pool(pool, out)
        _clear(out)
        return pool


def majorities(pool: Pool) -> dict[str, tuple[int, float]]:
    """Family to its number of questions, and the share that has the family's commonest answer: the floor of a reader
    who sees no picture. Of choices the place of the right one counts too, and the greater share is given."""
    of_family: dict[str, list[Question]] = defaultdict(list)
    for question in pool.questions:
        of_family[question.meta.get("family", "")].append(question)
    found = {}
    for family, members in sorted(of_family.items()):
        answers = Counter(question.answer for question in members)
        places = Counter(question.choices.index(question.answer) for question in members if question.choices)
        commonest = max([*answers.values(), *places.values()])
        found[family] = len(members), commonest / len(members)
    return found


def _finished(out: Path, made: dict[str, Any]) -> Pool:
    pool = read_pool(out)
    refuse_other(pool, made)
    _clear(out)
    return pool


def _clear(out: Path) -> None:
    """Remove what a pool needs until it is finished."""
    shutil.rmtree(out / _SCENES, ignore_errors=True)
    (out / _SETTINGS).unlink(missing_ok=True)


# Scenes ---------------------------------------------------------------------------------------------------------------


def _worked(
    out: Path,
    names: Sequence[tuple[str, int]],
    seed: int,
    workers: int | None,
    on_progress: OnProgress,
) -> list[Piece]:
    """The work on all scenes in their order; that which is there already is kept."""
    files = {name: out / _SCENES / f"{name[0]}_{name[1]}.json" for name in names}
    done = sum(file.is_file() for file in files.values())
    on_progress(done, len(names))
    left = [(out, *name, seed) for name in names if not files[name].is_file()]
    for _ in carried_out(work_on_scene, left, workers):
        done += 1
        on_progress(done, len(names))
    return [loads(file.read_text(encoding="utf-8"), Piece, str(file)) for file in files.values()]


def work_on_scene(out: Path, split: str, number: int, seed: int) -> None:
    """Write the pictures of a scene and then its piece; called in a worker."""
    from merton_studies.curation.cell.acting import acting, changing
    from merton_studies.curation.cell.arranging import arranged, table
    from merton_studies.curation.cell.looking import looking
    from merton_studies.curation.cell.measuring import measuring, placing

    scene, pictures = arranged(table(), split, number, seed)
    rng = generator("cell pool facts", seed, scene.id)
    facts = list(changing(scene, rng))
    for shot in scene.shots:
        for families in (looking, placing, measuring, acting):
            facts += families(scene, shot, rng)
    robotless = {shot.file for shot in scene.all_shots if not shot.shows_robot}
    facts = [fact for fact in facts if fact.family not in _BY_THE_ROBOT or not robotless & set(fact.pictures)]
    kept: dict[str, list[Fact]] = defaultdict(list)
    subjects: set[tuple[str, str]] = set()
    for index in rng.permutation(len(facts)).tolist():
        fact = facts[index]
        if len(kept[fact.family]) < _FACTS_OF_A_FAMILY and (fact.family, fact.subject) not in subjects:
            kept[fact.family].append(fact)
            subjects.add((fact.family, fact.subject))
    hashes = {}
    for file, content in pictures.items():
        _write(out / MEDIA / file, content)
        hashes[file] = hashlib.sha256(content).hexdigest()
    piece = Piece(scene=scene.id, facts=tuple(fact for some in kept.values() for fact in some), pictures=hashes)
    content = json.dumps(piece.model_dump(mode="json"), sort_keys=True).encode()
    _write(out / _SCENES / f"{split}_{number}.json", content)


def _write(file: Path, content: bytes) -> None:
    with written_whole(file, durable=False) as draft:
        draft.write(content)


# Questions ------------------------------------------------------------------------------------------------------------


def _assembled(out: Path, pieces: Sequence[Piece], questions: int, seed: int, made: dict[str, Any]) -> Pool:
    """The pool: chosen facts in words, and again in other words."""
    found = [Found(piece.scene, fact) for piece in pieces for fact in piece.facts]
    hashes = {file: sha256 for piece in pieces for file, sha256 in piece.pictures.items()}
    originals, again = chosen(found, questions, seed)
    order = generator("cell pool order", seed).permutation(len(originals) + len(again))
    ids = [f"cell-{number + 1:06d}" for number in order.tolist()]
    asked = [_question(one, ids[number], seed, hashes) for number, one in enumerate(originals)]
    for place, number in enumerate(again):
        asked.append(_question(originals[number], ids[len(originals) + place], seed, hashes, asked[number]))
    used = {question.source for question in asked}
    return Pool.of(asked, [source for source in sources() if source.name in used], out, **made)


def _question(found: Found, name: str, seed: int, hashes: dict[str, str], twin: Question | None = None) -> Question:
    fact = found.fact
    rng = generator("cell pool words", seed, *found.key, fact.family, twin is not None)
    past = {"source": twin.source, **twin.meta} if twin else None
    return Question(
        id=name,
        **worded(fact, rng, past),
        answer_kind=fact.answer_kind,
        answer=fact.answer,
        also=fact.also,
        unit=fact.unit,
        media=tuple(Medium(path=f"{MEDIA}/{file}", sha256=hashes[file]) for file in fact.pictures),
        scene=found.scene,
        dimension=fact.dimension,
        twin_of=twin.id if twin else "",
    )


def _sweep(out: Path, pool: Pool) -> None:
    """Remove pictures that no question has, and drafts of killed processes."""
    kept = {medium.path for question in pool.questions for medium in question.media}
    for file in (out / MEDIA).iterdir():
        if f"{MEDIA}/{file.name}" not in kept:
            file.unlink()
