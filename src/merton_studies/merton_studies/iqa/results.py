"""The files of a benchmark: page, CSV, LaTeX and Parquet."""

from __future__ import annotations

from pathlib import Path

from merton.files import write_file
from merton_studies.iqa.metric_files import as_csv, as_latex, as_parquet
from merton_studies.iqa.metric_page import page
from merton_studies.iqa.metric_table import Benchmark


def write_benchmark(found: Benchmark, out: Path, source: str = "") -> list[Path]:
    """Write `<label>.html`, `.csv`, `.tex` and `.parquet`; the same benchmark gives the same bytes.

    Args:
        found: the benchmark.
        out: folder.
        source: what was judged, for the page.

    Returns:
        The files.

    Raises:
        InfrastructureError: a file cannot be written.
        MissingDependencyError: pyarrow is not installed.
    """
    contents = {
        "html": page(found, source).encode(),
        "csv": as_csv(found).encode(),
        "tex": as_latex(found).encode(),
        "parquet": as_parquet(found),
    }
    files = []
    for ending, content in contents.items():
        files.append(out / f"{found.stage}.{ending}")
        write_file(files[-1], content)
    return files
