"""`merton study`: opinions of models on a whole dataset, and their correlation with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merton.cli.console import Run, print_err, print_out, progress, working
from merton.cli.tree import App, needs
from merton.errors import InputError
from merton.files import locked_folder

app = App("One score per image from annotations, the studies made of it, and of runs.")

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="ANNOTATED... DATASET",
        help="Folders of `merton annotate`, or subjects.parquet, or a folder of `study import`; then their dataset.",
    ),
]


@app.command("opinions")
@needs("dataset")
def opinions_command(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="Folder for subjects.parquet and opinions.parquet.")],
    label: Annotated[str, typer.Option(help="mean, or zscore: the subjects' standardised sums.")] = "mean",
    subject: Annotated[list[str] | None, typer.Option(help="Only this model; may be repeated.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only references of this domain: real or simulation.")] = None,
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Also the opinions without each subject, and its own.")
    ] = False,
) -> None:
    """Write one score per image: the mean over models of their scores, summed over the five tasks."""
    from merton_studies.annotate import opinions as made
    from merton_studies.opinions.dataset import remarks

    found = made.read_annotations(*annotated_and_dataset(folders), domain)
    with locked_folder(out, "merton study opinions"):
        opinions = made.write_opinions(found, out, label, subject)
        for remark in remarks(opinions):
            print_err(remark)
        for stage in opinions.stages:
            used = len(opinions.level) - len(opinions.unused(stage))
            print_out(f"{stage}: {used} images scored by {opinions.about['least_subjects'][stage]} subjects")
        if leave_one_out:
            names = made.write_leave_one_out(found, out, label)
            print_out(f"without and of each subject: {', '.join(names)}")
    print_out(f"{out}")


@app.command("dataset")
@needs("dataset")
def dataset_command(
    folders: Folders,
    out: Annotated[Path, typer.Option(help="The page, one file.")] = Path("study.html"),
    domain: Annotated[str | None, typer.Option(help="Only references of this domain: real or simulation.")] = None,
    levels: Annotated[str | None, typer.Option(help="ssim or psnr: levels are fifths of the images by it.")] = None,
) -> None:
    """Write a page: scores by distortion and level, what is just noticeable, the paper's claims, cases."""
    from merton_studies.annotate import opinions as made
    from merton_studies.annotate.cases import cases
    from merton_studies.opinions.dataset import dataset_study
    from merton_studies.opinions.dataset_page import write_dataset_page
    from merton_studies.opinions.quality_levels import at_quality_levels

    annotated, dataset = annotated_and_dataset(folders)
    opinions, sums = made.read_judgements(annotated, dataset, domain)
    by_quality = opinions if levels is None else at_quality_levels(opinions, dataset, levels)
    study = dataset_study(by_quality, sums)
    for remark in study.remarks:
        print_err(remark)
    print_out(f"page: {write_dataset_page(study, cases(opinions, dataset, annotated), out)}")


@app.command("attributes")
@needs("dataset")
def attributes_command(
    dataset: Annotated[Path, typer.Argument(help="Folder of a dataset, of any types of distortion.")],
    out: Annotated[Path, typer.Option(help="The page, one file.")] = Path("attributes.html"),
) -> None:
    """Write a page: luminance, contrast, chrominance, blur and spatial information by type (Embodied-IQA, Fig. 12)."""
    from merton_studies.annotate.views import scenes_of
    from merton_studies.opinions.attributes import attribute_study
    from merton_studies.opinions.attributes_page import write_attributes_page

    with working("reading the attributes"):
        study = attribute_study(dataset, scenes_of(dataset))
        page = write_attributes_page(study, out, dataset.resolve().name)
    for claim in study.claims:
        print_out(f"{claim.verdict}: {claim.text}: {claim.measured}")
    print_out(f"page: {page}")


@app.command("import")
@needs("dataset")
def import_command(
    scores: Annotated[
        Path, typer.Argument(help="Table (.csv, .tsv, .jsonl, .parquet): a row for each image [and rater].")
    ],
    dataset: Annotated[Path, typer.Argument(help="Folder of the dataset that was judged.")],
    out: Annotated[Path, typer.Option(help="Folder for opinions.parquet, and subjects.parquet of raters.")],
    scale: Annotated[
        tuple[float, float], typer.Option("--range", metavar="LOW HIGH", help="Lowest and highest possible score.")
    ],
    better: Annotated[str, typer.Option(help="higher or lower: which score means a better image (MOS, DMOS).")],
    label: Annotated[
        str | None, typer.Option(help="cognition or decision: what the column `score` stands for.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="PART=NAME: a column that holds a part, such as score=MOS.")
    ] = None,
) -> None:
    """Take over opinions that people or models gave elsewhere; `study dataset` and `iqa` read the result.

    Columns: image, or reference, distortion and level; score, or cognition, decision and their dimensions; and perhaps
    rater, or sd and n of a mean.
    """
    from merton.cli.columns import named_columns
    from merton_studies.annotate.foreign_opinions import import_opinions
    from merton_studies.opinions.whose import whose

    with working("reading the scores"):
        columns = named_columns(column)
        found, remarks = import_opinions(scores, dataset, out, scale, better, label, columns)
    for remark in remarks:
        print_err(remark)
    for stage in found.stages:
        judged = len(found.level) - len(found.unused(stage))
        print_out(f"{stage}: {judged} of {len(found.level)} images have an opinion of {whose(found.about, stage)}")
    print_out(f"{out}")


def annotated_and_dataset(folders: list[Path]) -> tuple[list[Path], Path]:
    """The folders of annotations, and the dataset after them; raises InputError if there is only one folder."""
    if len(folders) < 2:
        raise InputError("name at least one folder of `merton annotate`, and the folder of its dataset after it")
    return folders[:-1], folders[-1]


@app.command("execution")
@needs("dataset")
def execution_command(
    run: Run,
    opinions: Annotated[Path | None, typer.Option(help="Also C and D of an opinions.parquet of a dataset.")] = None,
    json: Annotated[Path | None, typer.Option(help="File for all numbers.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for a page.")] = None,
    include_failed_references: Annotated[
        bool, typer.Option("--include-failed-references", help="Keep trials whose undistorted run failed.")
    ] = False,
) -> None:
    """Do cognition, decision and image quality tell how the arm fares? Correlations over types, levels and trials."""
    import hashlib

    from merton.files import write_file
    from merton.perception.quality import METRICS
    from merton.results.store import ResultStore
    from merton.study import execution_page, execution_study
    from merton_studies.iqa.trial_values import trial_values
    from merton_studies.iqa.values import code_sha256
    from merton_studies.opinions.opinion_tables import read_opinions

    with ResultStore(run / "results.sqlite", read_only=True) as store:
        records = [record for experiment in store.experiments() for record in store.records(experiment)]
    if not execution_study.is_enough(run, records, include_failed_references):
        raise InputError(
            f"{run.name} has too little to correlate: at least {execution_study.LEAST_TYPES} types of distortion, and "
            "an agent that looks and whose undistorted runs succeed"
        )
    table = None if opinions is None else read_opinions(opinions)
    about = {} if opinions is None else {"opinions_sha256": hashlib.sha256(opinions.read_bytes()).hexdigest()}
    missing = {name: metric.missing() for name, metric in METRICS.items()}
    names = [name for name, reason in missing.items() if reason is None]
    about["metrics_sha256"] = hashlib.sha256("".join(code_sha256(name) for name in names).encode()).hexdigest()
    for name, reason in missing.items():
        if reason is not None:
            print_err(f"{name} is left out: {reason}")
    with progress("references measured") as on_progress:
        values = trial_values(run, records, names, on_progress=on_progress)
    with working("correlations"):
        found = execution_study.execution_study(run, records, table, values, include_failed_references, about)
    assert found is not None
    for line in execution_page.summary(found):
        print_out(line)
    contents = {json: execution_study.to_json(found), out: execution_page.page(found).encode()}
    for path, content in contents.items():
        if path is not None:
            write_file(path, content)
            print_out(str(path))
