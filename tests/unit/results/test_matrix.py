"""A foreign response matrix is taken in as it is, or refused with the place where it is wrong."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from postgres import new_database
from test_store import trial
from typer.testing import CliRunner

from merton.cli import results as commands
from merton.errors import InputError, MertonError
from merton.rating.metric import named
from merton.results.csv_writer import write_csv
from merton.results.matrix import Imported, ResponseMatrix, import_matrix, read_matrix
from merton.results.records import AgentRecord, CaseRecord, ForeignScore
from merton.results.schema import IMPORTS
from merton.results.store import ResultStore
from merton.results.tables import plain_number, read_rows

MTEB = Path(__file__).parents[4] / "shared/data/response_matrices/mteb_main_score.csv"
"""Main scores of 101 text-embedding models on 28 tasks of the MTEB; lies beside the checkout, where it is at all."""


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ResultStore:
    return ResultStore(tmp_path / "record.sqlite" if request.param == "sqlite" else new_database())


def written(tmp_path: Path, text: str | bytes, name: str = "matrix.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_matrix_is_read_cell_by_cell(tmp_path: Path) -> None:
    text = '\ufeffmodel, revision ,"STS, 12",b\r\none,v1, 0.25 ,\r\n\r\n"two",,1,1e-3\r\nthree,v1,,\r\n'
    matrix = read_matrix(written(tmp_path, text))
    assert matrix.agents == (AgentRecord("one", "v1"), AgentRecord("two"), AgentRecord("three", "v1"))
    assert matrix.cases == ("STS, 12", "b")
    assert matrix.cells == (("one", "STS, 12", 0.25), ("two", "STS, 12", 1.0), ("two", "b", 0.001))
    assert matrix.blanks == 3
    assert matrix.file_sha256 == hashlib.sha256(text.encode()).hexdigest()


def test_columns_of_agents_can_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "who,when,model,x\na,2024,0.5,1\n")
    matrix = read_matrix(path, agent_column="who", version_column="when")
    assert matrix.agents == (AgentRecord("a", "2024"),)
    assert matrix.cells == (("a", "model", 0.5), ("a", "x", 1.0))
    with pytest.raises(InputError, match=r"has no column 'nobody'; it has 'who', 'when'"):
        read_matrix(path, agent_column="nobody")


def test_an_import_is_remembered_with_its_file_and_done_once(store: ResultStore, tmp_path: Path) -> None:
    path = written(tmp_path, "model,revision,a,b\none,v1,0.5,\ntwo,v2,0,1\n")
    told: list[tuple[int, int]] = []
    done = import_matrix(store, read_matrix(path), on_progress=lambda *done: told.append(done))
    assert done == Imported("matrix", 2, 2, 3, 1, 3)
    assert told[-1] == (3, 3)
    assert import_matrix(store, read_matrix(path)) == Imported("matrix", 2, 2, 3, 1, 0)
    assert store.scores() == [
        ForeignScore("matrix", "one", "a", 0.5),
        ForeignScore("matrix", "two", "a", 0.0),
        ForeignScore("matrix", "two", "b", 1.0),
    ]
    assert store.cases() == [CaseRecord("a", "matrix"), CaseRecord("b", "matrix")]
    assert store.agents() == [AgentRecord("one", "v1"), AgentRecord("two", "v2")]
    assert store.matches() == [("one", "a", 0.5), ("two", "a", 0.0), ("two", "b", 1.0)]
    with store.database.reading() as connection:
        (origin,) = connection.execute(sa.select(IMPORTS)).all()
    assert (origin.source, origin.file_name) == ("matrix", "matrix.csv")
    assert origin.file_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_matrix_may_grow_and_not_change(store: ResultStore, tmp_path: Path) -> None:
    import_matrix(store, read_matrix(written(tmp_path, "model,a,b\none,0.5,\n"), "s"))
    assert import_matrix(store, read_matrix(written(tmp_path, "model,a,b,c\none,0.5,0.25,\ntwo,,,1\n"), "s")).new == 2
    before = store.scores(), store.agents(), store.cases()
    with pytest.raises(InputError, match=r"'one' on 'a' is already stored as 0.5, not 0.75"):
        import_matrix(store, read_matrix(written(tmp_path, "model,a,z\nnew,1,1\none,0.75,1\n"), "s"))
    with pytest.raises(InputError, match=r"case 'a' of 's' already"):
        import_matrix(store, read_matrix(written(tmp_path, "model,a\nnew,1\n"), "another"))
    assert (store.scores(), store.agents(), store.cases()) == before


def test_foreign_and_own_results_do_not_mix_by_accident(store: ResultStore, tmp_path: Path) -> None:
    store.record(trial())
    store.register_agent("servo", version="1.0")
    with pytest.raises(InputError, match="of Merton's own already"):
        import_matrix(store, read_matrix(written(tmp_path, f"model,{trial().case.id}\none,1\n")))
    with pytest.raises(InputError, match=r"agent 'servo' is in the record with version '1\.0', not '2\.0'"):
        import_matrix(store, read_matrix(written(tmp_path, "model,version,a\nservo,2.0,1\n")))
    assert import_matrix(store, read_matrix(written(tmp_path, "model,version,a\nservo,1.0,1\n"))).new == 1
    assert [match[0] for match in store.matches()] == ["servo", "servo"]


def test_values_of_a_named_metric_become_scores_and_its_name_is_kept(store: ResultStore, tmp_path: Path) -> None:
    raw = written(tmp_path, "model,a,b\none,85,\ntwo,0,100\n")
    matrix = read_matrix(raw, metric="execution", to_score=named("execution").score)
    assert matrix.cells == (("one", "a", 0.85), ("two", "a", 0.0), ("two", "b", 1.0))
    import_matrix(store, matrix)
    import_matrix(store, read_matrix(written(tmp_path, "model,c\none,1\n", "plain.csv")))
    with store.database.reading() as connection:
        kept = {row.source: row.metric for row in connection.execute(sa.select(IMPORTS))}
    assert kept == {"matrix": "execution", "plain": None}


def test_a_file_is_imported_by_one_metric(store: ResultStore, tmp_path: Path) -> None:
    """Scores that are equal would hide that the values are others."""
    raw = written(tmp_path, "model,a\none,1\n")

    def by(metric: str) -> ResponseMatrix:
        return read_matrix(raw, metric=metric, to_score=named(metric).score if metric else None)

    import_matrix(store, by("pdms"))
    assert import_matrix(store, by("pdms")).new == 0
    for other, now in (("coco_ap", "with --metric coco_ap"), ("", "without --metric")):
        with pytest.raises(InputError, match=f"was imported as 'matrix' with --metric pdms, and now {now}: do as"):
            import_matrix(store, by(other))


def test_the_command_maps_values_of_a_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "model,a\none,101\n")
    for words, sentence in (
        (["--metric", "execution"], r"matrix\.csv, line 2, column 2 \(a\): execution must be in 0\.\.100, got 101\.0"),
        (["--metric", "pass_all"], "pass_all must be in"),
        (["--metric", "speed"], "unknown metric 'speed'; choose one of: acc_at_1, accuracy, coco_ap"),
    ):
        result = CliRunner().invoke(commands.app, ["import", "record.sqlite", "matrix.csv", *words])
        assert isinstance(result.exception, MertonError)
        assert re.search(sentence, str(result.exception)), str(result.exception)
    assert not list(tmp_path.glob("*record.sqlite*"))
    written(tmp_path, "model,a\none,50\n")
    result = CliRunner().invoke(commands.app, ["import", "record.sqlite", "matrix.csv", "--metric", "execution"])
    assert result.exit_code == 0
    with ResultStore(tmp_path / "record.sqlite") as record:
        assert [score.score for score in record.scores()] == [0.5]


SUMS = {
    "long": ("model,task,score\nm,arc,.5\nm,mmlu,.7\nm,Average,.6\nm,Rank,1\n", ("Average", "Rank"), "cases"),
    "wide": (
        "model,arc,mmlu,Average score,Mean acc,avg_acc,Rank (all)\nm,.5,.7,.6,.6,.6,1\n",
        ("Average score", "Mean acc", "avg_acc", "Rank (all)"),
        "columns",
    ),
}


@pytest.mark.parametrize("name", SUMS)
def test_what_sums_up_others_is_no_case(tmp_path: Path, name: str) -> None:
    text, summaries, what = SUMS[name]
    matrix = read_matrix(written(tmp_path, text))
    assert matrix.cases == ("arc", "mmlu")
    assert matrix.cells == (("m", "arc", 0.5), ("m", "mmlu", 0.7))
    assert matrix.remarks == tuple(f"{one} sums up the other {what} and is left out." for one in summaries)
    for alone in ("model,task,score\nm,mean,.5\n", "model,Averages,Overall\nm,.5,.5\n"):
        assert not read_matrix(written(tmp_path, alone)).remarks


def test_truth_values_are_scores_and_no_values_of_a_metric(tmp_path: Path) -> None:
    for name, content in (("matrix.csv", "model,a\none,True\n"), ("matrix.csv", "model,a\none,false\n")):
        with pytest.raises(InputError, match=r"column 2 \(a\): '(True|false)' is not a number"):
            read_matrix(written(tmp_path, content, name), metric="pdms", to_score=named("pdms").score)


def test_the_ending_of_a_name_may_be_in_capitals(tmp_path: Path) -> None:
    assert read_matrix(written(tmp_path, "model,a\none,1\n", "UP.CSV")).cells == (("one", "a", 1.0),)


def test_the_index_of_pandas_in_parquet_is_read_as_that_of_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"a": [0.5, 0.25], "b": [1.0, 0.0]}, index=["one", "two"])
    frame.to_parquet(tmp_path / "matrix.parquet")
    frame.to_csv(tmp_path / "matrix.csv")
    of_parquet, of_csv = (read_matrix(tmp_path / f"matrix.{ending}") for ending in ("parquet", "csv"))
    right = (("one", "a", 0.5), ("one", "b", 1.0), ("two", "a", 0.25), ("two", "b", 0.0))
    assert of_parquet.cells == of_csv.cells == right


def test_what_is_written_as_csv_is_read_back_the_same(tmp_path: Path) -> None:
    """A foreign text with one apostrophe, which `formula_safe` does not write, is itself."""
    texts = ["-x", "'y", "''z", "=1", "ok", "'", "\t"]
    path = write_csv(tmp_path / "own.csv", ("case", "answer"), [(f"c{at}", text) for at, text in enumerate(texts)])
    assert [row["answer"] for _, row in read_rows(path, ("case", "answer"))] == texts
    foreign = written(tmp_path, "case,answer\na,'tis\n", "foreign.csv")
    assert [row["answer"] for _, row in read_rows(foreign, ("case", "answer"))] == ["'tis"]


def test_the_separator_that_a_spreadsheet_says_is_used(tmp_path: Path) -> None:
    """As Excel reads and writes it; the header has more commas than semicolons. Lines keep their numbers."""
    for said in ("sep=;", '"sep=;"', "# it's 5\" wide; a,b,c\r\n# more\nsep=;"):
        path = written(tmp_path, f'\ufeff{said}\r\nmodel;"a";b, c, d\r\none;"0,5";1\r\n')
        assert read_matrix(path).cells == (("one", "a", 0.5), ("one", "b, c, d", 1.0))
    with pytest.raises(InputError, match="line 3, column 2"):
        read_matrix(written(tmp_path, "sep=;\nmodel;a\none;x\n"))


def test_comments_stand_before_the_header_alone(tmp_path: Path) -> None:
    """As a page names a file on top of it; a column may be called "#", and an agent may begin with it."""
    for ending, comma in ((".csv", ","), (".tsv", "\t")):
        table = "# ours, of May\nagent,a b,#\n# one,0.5,1\n".replace(",", comma)
        read = read_matrix(written(tmp_path, table, f"ours{ending}"))
        assert read.cells == (("# one", "a b", 0.5), ("# one", "#", 1.0))
    with pytest.raises(InputError, match="line 4, column 2"):
        read_matrix(written(tmp_path, "# ours.csv\n# 2\nagent,a\none,x\n"))
    with pytest.raises(InputError, match="no column of agents"):
        read_matrix(written(tmp_path, "#,a\none,1\n"))


BAD = {
    "inf": ("model,a\none,inf\n", "line 2, .*'inf' is not a number"),
    "too big": ("model,a\none,0.5\ntwo,1.0001\n", r"line 3, column 2 \(a\): the score 1.0001 is not in 0 .. 1"),
    "percent": ("model,a\none,85\n", "85.0 is not in 0 .. 1; rescale"),
    "percent of a metric": ("model,a\none,0.5 %\ntwo,85 % of all\n", "line 3, .*is not a number"),
    "decimal comma": ('model,a\none,"1,000"\n', "'1,000' is not a number; write 1000 or 1.000; leave"),
    "texts": (
        "model,type,a\none,open,1\ntwo,closed,0\n",
        r"column 2 \(type\) holds no number but texts such as 'open'",
    ),
    "long, twice": (
        "model,task,score\none,a,1\none,a,1\n",
        "line 3: agent 'one' has a score of 'a' already in .*line 2",
    ),
    "long, versions": (
        "model,revision,task,score\none,v1,a,1\none,v2,b,1\n",
        "line 3: agent 'one' had another version",
    ),
    "long, and more": (
        "model,task,shots,score\none,a,5,1\none,b,5,1\n",
        "line 3: agent 'one' stands already in .*columns are agent, case and score alone",
    ),
    "index and text": (",a\n0,1\n1,1\n", "no column of agents"),
    "index that is none": (",model,a\n0,one,1\nx,two,1\n", "line 3: column 1 has no name in the header"),
    "overflow": ("model,a\none,1e999\n", "inf is not in 0 .. 1"),
    "negative": ("model,a\none,-0.1\n", "-0.1 is not in"),
    "underscore": ("model,a\none,0_1\n", "not a number"),
    "word": ("model,a\none,N/A\n", "leave the cell blank"),
    "other digits": ("model,a\none,٠.٥\n", "not a number"),
    "duplicate agent": ("model,a\none,1\ntwo,1\none,0\n", r"line 4: agent 'one' stands already in matrix\.csv, line 2"),
    "duplicate case": ("model,a,b,a\none,1,1,1\n", "matrix.csv, line 1: columns 2 and 4 are both called 'a'"),
    "ragged": ("model,a,b\none,1,1\ntwo,1\n", "matrix.csv, line 3: has 2 cells, but the header names 3 columns"),
    "too wide": ("model,a\none,1,1\n", "has 3 cells, but the header names 2 columns"),
    "no cases": ("model,revision\none,v1\n", "no column of scores"),
    "no agents": ("model,a\n", "no agents"),
    "empty": ("", "matrix.csv: is empty"),
    "no name": ("model,a\n,1\n", r"agent \(matrix.csv, line 2\) must be printable text, got ''"),
    "no case name": ("model,a,\none,1,1\n", "case in column 3"),
    "no agent column": ("foo,a\none,1\n", "no column of agents, called agent, model.*it has 'foo', 'a'"),
    "two agent columns": ("agent,model,a\none,two,1\n", "agent and model; say which one holds the agents"),
    "long name": (f"model,a\n{'x' * 10_000},1\n", "may have 200 characters, got 10000"),
    "long case": (f"model,{'x' * 10_000}\none,1\n", "case in column 2 of matrix.csv may have 200"),
    "huge cell": (f"model,a\n{'x' * 200_000},1\n", r"agent \(matrix.csv, line 2\) may have 200 characters"),
    "bidi": ("model,a\n\u202eevil,1\n", r"agent \(matrix.csv, line 2\) must be printable"),
    "bidi version": ("model,version,a\none,\u2066v,1\n", r"version \(matrix.csv, line 2\)"),
    "formula": ('model,a\n"=HYPERLINK(""x"")",1\n', r"agent \(matrix.csv, line 2\) looks like a formula"),
    "formula case": ("model,@SUM(A1)\none,1\n", "case in column 2 of matrix.csv looks like a formula"),
    "nul": ("model,a\no\0ne,1\n", "line 2"),
    "binary": (b"\x89PNG\xff\n", "matrix.csv, line 1: is not UTF-8"),
    "latin-1": ("model,a\nÄ,1\n".encode("latin-1"), "matrix.csv, line 2: is not UTF-8"),
    "open quote": ('model,a\n"one,1\n', "is no CSV"),
    "text after a quote": ('model,a\n"o"ne,1\n', "matrix.csv, line 2: is no CSV"),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_of_a_matrix_are_refused_with_their_place(tmp_path: Path, name: str) -> None:
    """Faults 18 and 19."""
    text, sentence = BAD[name]
    with ResultStore(tmp_path / "record.sqlite") as store:
        with pytest.raises(InputError, match=sentence) as caught:
            import_matrix(store, read_matrix(written(tmp_path, text)))
        assert len(str(caught.value)) < 500
        assert "\n" not in str(caught.value)
        assert (store.agents(), store.cases(), store.scores()) == ([], [], [])


FORMS = {
    "Model": "Model,Version,a,b\none,v1,0.5,\ntwo,,1,0\n",
    "semicolons": "model;version;a;b\none;v1;0.5;\ntwo;;1;0\n",
    "decimal commas": "model;version;a;b\none;v1;0,5;\ntwo;;1,0;0\n",
    "tabs": "model\tversion\ta\tb\none\tv1\t0.5\t\ntwo\t\t1\t0\n",
    "UTF-16": "model\tversion\ta\tb\none\tv1\t0.5\t\ntwo\t\t1\t0\n".encode("utf-16"),
    "index of numbers": ",model,version,a,b\n0,one,v1,0.5,\n7,two,,1,0\n",
    "index of numbers, written twice": "Unnamed: 0,model,version,a,b\n0,one,v1,0.5,\n1,two,,1,0\n",
    "index of names": ",version,a,b\none,v1,0.5,\ntwo,,1,0\n",
    "missing": "model,version,a,b\none,v1,0.5,NaN\ntwo,<NA>,1,0\n",
    "truth": "model,version,a,b\none,v1,0.5,\ntwo,,True,FALSE\n",
    "percent": "model,version,a,b\none,v1,50%,\ntwo,,100.0 %,0\n",
    "average": "model,version,Average ⬆️,a,b\none,v1,0.5,0.5,\ntwo,,0.5,1,0\n",
    "long": "Model,version,Task,Score\none,v1,a,0.5\ntwo,,a,1\none,v1,b,\ntwo,,b,0\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_tables_of_other_programs_are_the_same_matrix(tmp_path: Path, name: str) -> None:
    matrix = read_matrix(written(tmp_path, FORMS[name]))
    assert matrix.agents == (AgentRecord("one", "v1"), AgentRecord("two"))
    assert matrix.cases == ("a", "b")
    assert sorted(matrix.cells) == [("one", "a", 0.5), ("two", "a", 1.0), ("two", "b", 0.0)]
    assert matrix.blanks == 1
    said = ("Average ⬆️ sums up the other columns and is left out.",)
    assert matrix.remarks == (said if name == "average" else ())


def test_what_sums_up_the_others_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, FORMS["average"])
    result = CliRunner().invoke(commands.app, ["import", "record.sqlite", "matrix.csv"])
    assert "Average ⬆️ sums up the other columns and is left out." in result.output
    assert read_matrix(written(tmp_path, "model,mean\none,1\n")).cases == ("mean",), "the only one is a case"


def test_parquet_of_pandas_keeps_its_index_of_names(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"model": ["one", "two"], "a": [0.5, math.nan], "b": [True, False]})
    frame[frame.model != "none"].loc[[1, 0]].to_parquet(tmp_path / "m.parquet")
    matrix = read_matrix(tmp_path / "m.parquet")
    assert sorted(matrix.cells) == [("one", "a", 0.5), ("one", "b", 1.0), ("two", "b", 0.0)]


@pytest.mark.parametrize("words", [["matrix.csv"], ["absent.csv"], ["good.csv", "--source", "=x"]])
def test_a_refused_import_leaves_no_record_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, BAD["percent"][0])
    written(tmp_path, "model,a\none,1\n", "good.csv")
    result = CliRunner().invoke(commands.app, ["import", "record.sqlite", *words])
    assert isinstance(result.exception, InputError)
    assert not list(tmp_path.glob("*record.sqlite*"))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.csv: No such file"):
        read_matrix(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="holds no results of lm-eval, mteb or Inspect"):
        read_matrix(tmp_path)
    with pytest.raises(InputError, match=r"a \.csv, \.tsv or \.parquet file, or results .* not 'm\.xlsx'"):
        read_matrix(written(tmp_path, "", "m.xlsx"))


def test_parquet_has_the_same_content_as_csv(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")

    def parquet(columns: dict[str, list[object]]) -> Path:
        arrow.parquet.write_table(arrow.table(columns), tmp_path / "m.parquet")
        return tmp_path / "m.parquet"

    columns: dict[str, list[object]] = {"model": ["one", "two"], "revision": ["v", None], "a": [0.5, None], "b": [1, 0]}
    matrix = read_matrix(parquet(columns))
    same = read_matrix(written(tmp_path, "model,revision,a,b\none,v,0.5,1\ntwo,,,0\n"))
    assert (matrix.agents, matrix.cases, matrix.cells, matrix.blanks) == (same.agents, same.cases, same.cells, 1)
    for bad, sentence in (
        ([0.5, math.inf], r"m\.parquet, row 2, column 3 \(a\): the score inf is not in 0 .. 1"),
        ([0.5, 1.5], "row 2"),
        ([[0.5], [0.5]], r"column 3 \(a\) holds no number but texts such as '\[0\.5\]'"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_matrix(parquet({**columns, "a": bad}))
    with pytest.raises(InputError, match="is no Parquet table"):
        read_matrix(written(tmp_path, "PAR1 nonsense PAR1", "n.parquet"))


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "0x1", "٠.٥", "", "1" * 100_000 + "x"])
def test_a_text_is_a_number_only_as_a_spreadsheet_writes_it(text: str) -> None:
    assert plain_number(text) is None


def test_a_number_is_plain_in_each_type_that_tables_have() -> None:
    assert [plain_number(cell) for cell in (" +1e-3 ", ".5", 1, 0.25, Decimal("0.5"))] == [0.001, 0.5, 1.0, 0.25, 0.5]
    assert [plain_number(cell) for cell in (None, True, [0.5], b"1")] == [None] * 4
    assert plain_number(10**400) == math.inf


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp()
    heads = (b"model,a\n", b"model;task;score\n", b",a,Average\n0,")
    for name, head in (*(("m.csv", head) for head in heads), ("m.parquet", b"PAR1")):
        if name == "m.parquet":
            pytest.importorskip("pyarrow")
        (folder / name).write_bytes(head + content)
        with contextlib.suppress(InputError):
            read_matrix(folder / name)


def test_the_mteb_matrix_is_imported_whole(store: ResultStore) -> None:
    if not MTEB.is_file():
        pytest.skip("the MTEB matrix is not beside this checkout")
    done = import_matrix(store, read_matrix(MTEB, "mteb"))
    assert done == Imported("mteb", 101, 28, 101 * 28 - 168, 168, 101 * 28 - 168, 6)
    assert import_matrix(store, read_matrix(MTEB, "mteb")).new == 0
    assert len(store.matches()) == 101 * 28 - 168
