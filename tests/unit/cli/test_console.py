"""The lines and tables of the `merton` command."""

from __future__ import annotations

import io
import re
import sys
import threading
from itertools import islice

import pytest
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from merton.cli import console
from patience import stretched


def test_lines_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"module:M: [red]3[/] {'long ' * 40}"
    console.print_out(text)
    console.print_err(text)
    printed = capsys.readouterr()
    assert printed.out == printed.err == f"{text}\n"


def test_a_bracket_in_a_cell_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name", "count", box=None)
    console.add_row(table, "[red]agent[/]", 3)
    console.STDOUT.print(table)
    assert "[red]agent[/]" in capsys.readouterr().out


def test_progress_says_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("counting") as on_progress:
        on_progress(1, 2)
    assert capsys.readouterr().out == ""


def test_where_no_bar_is_drawn_a_long_work_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line every few seconds, and none for a work that is shorter than that."""
    said = threading.Event()

    def print_err(text: str) -> None:
        print(text, file=sys.stderr)
        said.set()

    def wait_for_two() -> None:
        """The first may have been on its way already."""
        for _ in range(2):
            said.clear()
            assert said.wait(stretched(10))

    with console.progress("short"), console.working("short"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(console, "QUIET_S", 0.001)
    monkeypatch.setattr(console, "print_err", print_err)
    with console.progress("counting") as on_progress:
        on_progress(2, 4)  # may have been there before
        wait_for_two()
        on_progress(3, 4)
        wait_for_two()
    told = capsys.readouterr().err
    assert re.search(r"^counting: 3 of 4, about \d+ s left$", told, re.MULTILINE)
    assert "counting: 2 of 4\n" in told
    with console.working("reading") as name:
        name("[red]rating[/]")
        wait_for_two()
    assert "[red]rating[/] …\n" in capsys.readouterr().err


def test_the_time_left_follows_the_costs_of_the_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cheap pieces first: by their number a third would be done, by their cost a twelfth is."""
    now_s = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now_s[0])
    plain, weighed = console.Meter("trials"), console.Meter("trials", (1.0, 1.0, 5.0, 5.0, 6.0, 6.0))
    for meter in (plain, weighed):
        assert meter.words() == "trials …"
        meter(0, 6)
        assert meter.words() == "trials: 0 of 6"
        meter(2, 6)
    now_s[0] += 4.0
    assert plain.words() == "trials: 2 of 6, about 8 s left"
    assert weighed.words() == "trials: 2 of 6, about 44 s left"
    weighed(6, 6)
    assert weighed.words() == "trials: 6 of 6"


def test_work_of_an_earlier_process_is_no_pace_and_another_work_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now_s[0])
    meter = console.Meter("first")
    meter(90, 100)
    now_s[0] = 100.0
    meter(91, 100)
    assert meter.words() == "first: 91 of 100, about 15 min left"
    meter.name("second")
    meter(0, 10)
    assert meter.words() == "second: 0 of 10"
    now_s[0] = 110.0
    meter(5, 10)
    assert meter.words() == "second: 5 of 10, about 10 s left"


def test_a_log_has_a_line_every_half_minute() -> None:
    """The pauses between lines grow, and none is longer than that."""
    pauses_s = list(islice(console.pauses_s(), 12))
    assert pauses_s[0] == console.QUIET_S
    assert pauses_s == sorted(pauses_s)
    assert max(pauses_s) == console.LONGEST_QUIET_S == 30.0


def test_a_terminal_is_shown_nothing_that_it_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    """ESC ] 0 sets a title, ESC [ 31 m a colour, C1's CSI the same, U+202E turns the direction: of a server's text."""
    attack = "say \x1b]0;owned\x07\x1b[31mred\x9b31m\u202eback\x00 ok\n\ttabbed é 红"
    console.print_out(attack)
    console.print_err(attack)
    table = Table("one")
    console.add_row(table, attack)
    console.STDOUT.print(table)
    console.STDOUT.print(f"[red]{escape(attack)}[/]", highlight=False)
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
        assert "é 红" in text
    assert said.out.startswith("say \ufffd]0;owned\ufffd[31mred\ufffd31m\ufffdback\ufffd ok\n"), "rich drops the bell"


def test_colours_of_our_own_are_still_colours() -> None:
    lines = io.StringIO()
    coloured = Console(file=lines, force_terminal=True, color_system="standard")
    coloured.push_render_hook(console._Harmless())
    coloured.print("[red]red[/] \x1b[32mnot green")
    assert "\x1b[31mred\x1b[0m" in lines.getvalue()
    assert "\x1b[32m" not in lines.getvalue()
