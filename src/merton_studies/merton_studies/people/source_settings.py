"""Settings of the key `items` of a project: one source, and the settings of each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from merton.config import Model

Place = Annotated[str, Field(min_length=1, max_length=1000)]
"""A file or folder, relative to the project's file."""
Name = Annotated[str, Field(min_length=1, max_length=200)]
Some = Annotated[int, Field(ge=1, le=100_000)]


class Images(Model):
    """Pictures in a folder and its folders.

    The first folder below `folder` is the scene of the pictures in it; a picture beside those is a scene by itself.

    Attributes:
        folder: has them.
        instruction: shown beside each.
    """

    folder: Place
    instruction: Annotated[str, Field(max_length=2000)] = ""


class Dataset(Model):
    """Images of a dataset that `merton dataset build` wrote; a reference image is a scene.

    Attributes:
        folder: of the dataset.
        references: so many, drawn by the project's seed; None: all.
        each: so many distorted copies of each reference, drawn likewise; None: all.
        domain: only references of this domain.
    """

    folder: Place
    references: Some | None = None
    each: Some | None = None
    domain: Name | None = None


class Suggestions(Model):
    """An agent's proposals of the dimensions of questions, which raters see first and correct (A2Eval, appendix D.1).

    Attributes:
        file: as `merton_studies.curation.suggestions` reads it: a table of question and dimension, or the folder or
            assignments.parquet of a curation.
        hidden: share of the answers, drawn by the project's seed, whose page does not show the suggestion. Ours: only
            these tell how far it draws people; the source shows it to all.
    """

    file: Place
    hidden: Annotated[float, Field(ge=0.0, le=0.9)] = 0.0


class Curation(Model):
    """Questions of a pool and the dimensions they were assigned to: half of a dimension's are its own, half are not.

    Attributes:
        folder: of a curated benchmark, or of a pool with its dimensions.
        per_dimension: questions of a dimension (A2Eval, appendix D.3: 100).
        suggestions: of an agent, which raters correct; None: they start from nothing (appendix D.3).
    """

    folder: Place
    per_dimension: Annotated[int, Field(ge=2, le=10_000)] = 100
    suggestions: Suggestions | None = None


class Outputs(Model):
    """Plans of models: a row each with model, scenario, video, instruction and plan.

    Attributes:
        table: CSV, .jsonl or .parquet; videos are relative to it.
    """

    table: Place


class Run(Model):
    """Trials of a run, by films of them, or by the pictures that it kept.

    A run keeps what its models saw before each chunk, so its pictures end before the last chunk is carried out.

    Attributes:
        run: its folder, or its name.
        videos: folder of `merton people videos RUN`: films of its trials from start to end, shown in place of pictures.
        camera: whose pictures are shown; None: the top camera, or the one there is.
        rate_hz: frames a second, since a run keeps a picture of each step and not its time.
        cases: so many of each task, drawn by the project's seed; None: all.
    """

    run: Place
    videos: Place | None = None
    camera: Name | None = None
    rate_hz: Annotated[float, Field(gt=0.0, le=60.0)] = 2.0
    cases: Some | None = None


class Videos(Model):
    """Videos in folders: reference/TASK/VIDEO, and TEAM/TASK/VIDEO of each team.

    The scene of a video is that in the folder's table videos.csv, if it has one, else its task and name.

    Attributes:
        folder: has the folders `reference` and those of the teams.
    """

    folder: Place


class Recording(Model):
    """Trials of an MCAP recording.

    Attributes:
        file: the recording.
        camera: whose pictures are shown; None: the top camera, or the one there is.
        rate_hz: frames a second that are shown, at most.
    """

    file: Place
    camera: Name | None = None
    rate_hz: Annotated[float, Field(gt=0.0, le=60.0)] = 5.0


class Items(Model):
    """The source of a project's items: one of these keys, with its settings.

    Attributes:
        images, dataset, curation, outputs, run, videos, recording: the sources.
        gold: YAML file with the right answers of gold items: id of the item to its answer.
    """

    images: Images | None = None
    dataset: Dataset | None = None
    curation: Curation | None = None
    outputs: Outputs | None = None
    run: Run | None = None
    videos: Videos | None = None
    recording: Recording | None = None
    gold: Place | None = None

    @model_validator(mode="after")
    def _one(self) -> Items:
        given = [name for name in SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            have = f"has {' and '.join(given)}" if given else "has no source"
            raise ValueError(f"{have}; it must have one of the keys {', '.join(SOURCES)}")
        return self

    @property
    def source(self) -> str:
        """The key that was given."""
        return next(name for name in SOURCES if getattr(self, name) is not None)


SOURCES = ("images", "dataset", "curation", "outputs", "run", "videos", "recording")
"""Keys of the sources."""
