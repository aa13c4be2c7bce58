"""Plans that models wrote for a video and an instruction (A2Eval, appendix E)."""

from __future__ import annotations

import re

from merton.errors import InputError
from merton.progress import OnProgress
from merton.results.tables import name_in, read_rows
from merton_studies.people.item import Item
from merton_studies.people.project import Loaded
from merton_studies.people.source_settings import Outputs
from merton_studies.people.sources.prepared import Prepared, in_parallel, video_prepared

COLUMNS = ("model", "scenario", "video", "instruction", "plan")
LONGEST_TEXT = 20_000


def items_of(loaded: Loaded, settings: Outputs, on_progress: OnProgress) -> list[Item]:
    """An item for each row, in the order of the table; the scenario is the scene.

    `video` names a video, a picture or a folder of pictures, relative to the table.

    Raises:
        InputError: no such table; a model's plan that stands twice or is missing where others have one, an empty plan,
            a video that is not there, or in a blind project a text that names a model; with the line.
    """
    table = loaded.place(settings.table)
    rows: dict[tuple[str, str], tuple[str, dict[str, str], str]] = {}
    for where, row in read_rows(table, COLUMNS):
        model, scenario = name_in(where, row, "model"), name_in(where, row, "scenario")
        if (model, scenario) in rows:
            first = rows[model, scenario][0]
            raise InputError(f"{where}: {model!r} has a plan for {scenario!r} already, in {first}")
        texts = {key: _text(where, row[key], key) for key in ("instruction", "plan")}
        video = _text(where, row["video"], "video")
        if "\x00" in video or not (table.parent / video).exists():
            raise InputError(f"{where}: there is no video {video[:200]!r} beside the table")
        rows[model, scenario] = where, texts, video
    scenarios, models = (sorted({key[place] for key in rows}) for place in (1, 0))
    for model in models:
        missing = [scenario for scenario in scenarios if (model, scenario) not in rows]
        if missing:
            raise InputError(f"{table}: model {model!r} has no plan for {missing[0]!r}, which others have")
    if loaded.project.blind:
        _check_blind(rows, models)
    videos = sorted({video for _, _, video in rows.values()})

    def prepared(video: str) -> Prepared:
        return video_prepared(table.parent / video, loaded.media)

    media = dict(zip(videos, in_parallel(prepared, videos, on_progress), strict=True))
    return [
        Item(
            f"{model} | {scenario}",
            scenario,
            {"video": media[video]("video")},
            texts,
            {"model": model, "scenario": scenario},
        )
        for (model, scenario), (_, texts, video) in rows.items()
    ]


def _check_blind(rows: dict[tuple[str, str], tuple[str, dict[str, str], str]], models: list[str]) -> None:
    named = re.compile("|".join(rf"(?<!\w){re.escape(model)}(?!\w)" for model in models), re.IGNORECASE)
    for where, texts, _ in rows.values():
        for key, text in texts.items():
            found = named.search(text)
            if found:
                raise InputError(
                    f"{where}: the {key} names the model {found.group()!r}, which would tell raters whose it is: take "
                    "it out of the text, or call the model otherwise in the table"
                )


def _text(where: str, value: object, column: str) -> str:
    text = str(value or "").strip()
    if not text:
        raise InputError(f"{where}: {column} is empty")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{where}: {column} has {len(text)} characters; at most {LONGEST_TEXT} are shown")
    return text
