"""From nothing to one page: the pictures of the sample, the study of their opinions, metrics, gates, execution.

Every step keeps what it has made in the folder of the demonstration, so that the same call goes on after a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from merton.files import locked_folder
from merton.perception.quality.learned import TRAINABLE, trainable
from merton.progress import Step, about
from merton.study.execution_study import ExecutionStudy, from_json
from merton_studies.annotate.cases import cases
from merton_studies.iqa import sample
from merton_studies.iqa.benchmark import PREPARED, benchmark, chosen_metrics
from merton_studies.iqa.gate_study import GateStudy, gate_study
from merton_studies.iqa.gate_table import SAMPLE, read_gate_table
from merton_studies.iqa.judged import read_judged
from merton_studies.iqa.metric_table import Benchmark
from merton_studies.iqa.results import write_benchmark
from merton_studies.iqa.values import metric_values
from merton_studies.opinions.dataset import Case, DatasetStudy, dataset_study
from merton_studies.opinions.opinion import OPINIONS, opinions, read_images, read_subjects, write_opinions

DATASET, VALUES, BENCHMARK = "data", "values", "benchmark"
"""Folders of the demonstration: pictures, values of metrics, and tables, one folder a stage."""
OWN = ("merton-nr", "merton-fr")
TRAINED: dict[str, dict[str, Sequence[str]]] = {
    "decision": {"pair": OWN, "reference": tuple(TRAINABLE), "type": OWN},
    "cognition": {"reference": OWN},
}
"""Stage and split to the metrics that are trained; those without training are tested on all of them."""
REPEATS = 2
"""Of each split. The paper has 10, and `merton iqa benchmark` too; they take longer than a newcomer waits."""
ALPHA = 0.1
EXECUTION = Path(__file__).with_name("execution_study.json")
"""The execution study of config/experiments/execution_study.yaml (`merton study execution RUN --json`)."""


@dataclass(frozen=True)
class IqaDemo:
    """Everything on the page.

    Attributes:
        same, images: pictures that equal the scored ones bit by bit, and all.
        study: of the opinions.
        cases: of the gallery.
        tables: stage to its benchmark.
        gate: of the trials that come with Merton.
        execution: that comes with Merton.
    """

    same: int
    images: int
    study: DatasetStudy
    cases: Sequence[Case]
    tables: dict[str, Benchmark]
    gate: GateStudy
    execution: ExecutionStudy


def demonstrate(out: Path, step: Step, repeats: int = REPEATS, metrics: Sequence[str] | None = None) -> IqaDemo:
    """Make, or go on making, everything that the page shows.

    Args:
        out: folder, new or begun by an earlier call.
        step: shows the progress.
        repeats: of each split.
        metrics: names; by default all that this machine can measure, and all that can be trained.

    Raises:
        InputError: the folder holds something else.
        InfrastructureError: the folder cannot be written, or a worker was killed.
        MissingDependencyError: a package of the extra `iqa` or the simulator is not installed.
    """
    measured, trained = chosen_metrics(metrics)
    if metrics is None:  # the page shows all, and a missing package is said now, not after minutes of measuring
        trained = [trainable(name).name for name in TRAINABLE]
    with locked_folder(out, "merton iqa demo"):
        data = out / DATASET
        same, images = sample.make_sample(data, step)
        sums = read_subjects(sample.SUBJECTS)
        found = opinions(sums, read_images(data))
        write_opinions(found, out / OPINIONS)
        with step("measure") as on_progress:
            values = metric_values(data, measured, out / VALUES, on_progress=on_progress)
        tables = {}
        for stage, splits in TRAINED.items():
            folder = out / BENCHMARK / stage
            # the page says itself how many pictures are not those that were scored
            judged = replace(read_judged(data, sample.SUBJECTS, stage), remarks=())
            wanted = {split: [name for name in names if name in trained] for split, names in splits.items()}
            tables[stage] = benchmark(
                judged, values, wanted, folder, tuple(splits), repeats,
                step=about(step, stage), prepared=out / PREPARED,
            )  # fmt: skip
            write_benchmark(tables[stage], folder, "the sample of Merton")
        with step("study the opinions"):
            study = dataset_study(found, sums)
            gallery = cases(found, data)
        with step("compare gates"):
            gate = gate_study(read_gate_table(SAMPLE), ALPHA)
        execution = from_json(EXECUTION.read_bytes(), EXECUTION.name)
        return IqaDemo(same, images, study, gallery, tables, gate, execution)
