"""Text and tables on the screen."""

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nandlab.console import _STYLES, Console, Table, escape, width


def printed(*shown, columns=40, styles=False, soft_wrap=False):
    out = io.StringIO()
    console = Console(out, width=columns, styles=styles)
    for one in shown:
        console.print(one, soft_wrap=soft_wrap)
    return out.getvalue()


def test_lines_end_between_words():
    text = "one two three four five six seven eight nine"
    assert printed(text, columns=14) == "one two three\nfour five six\nseven eight\nnine\n"
    assert printed(text, columns=14, soft_wrap=True) == text + "\n"
    assert printed("a verylongword b", columns=6) == "a\nverylongword\nb\n"
    assert printed("  two  blanks\n  line", columns=40) == "  two  blanks\n  line\n"
    assert printed("") == "\n"


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=40), st.integers(12, 60))
def test_wrapped_lines_are_as_long_as_they_can_be(words, columns):
    lines = printed(" ".join(words), columns=columns).splitlines()
    assert " ".join(lines).split() == words
    assert all(len(line) <= columns for line in lines)
    assert all(len(line) + 1 + len(after.split()[0]) > columns for line, after in itertools.pairwise(lines))


def test_styles():
    text = "[bold]a b[/] c [red]d[/]" + escape("[x] [dim]")
    assert printed(text) == "a b c d[x] [dim]\n"
    assert printed(text, styles=True) == "\x1b[1ma b\x1b[0m c \x1b[31md\x1b[0m[x] [dim]\n"
    # A style goes on in the next line.
    assert printed("[red]one two[/] three", columns=4, styles=True) == "\x1b[31mone\x1b[0m\n\x1b[31mtwo\x1b[0m\nthree\n"
    for text in ("x\\", "C:\\[red]x[/]", "\\", "a\\\\b", "a[b]\\[c"):
        assert printed("[red]" + escape(text) + "[/]") == text + "\n"
    assert all(printed(f"[{style}]x[/]") == "x\n" for style in _STYLES)


def test_widths():
    assert [width(text) for text in ("abc", "[red]abc[/]", "\u4e2d\u6587", "e\u0301", escape("[red]"), "\x1b")] == [
        *(3, 3, 4, 1, 5, 4)
    ]
    table = Table(head=False)
    table.add_column()
    table.add_column(justify="right")
    for row in (("\u4e2d\u6587", "1"), ("abc", "1000")):
        table.add_row(*row)
    assert printed(table) == "\u4e2d\u6587     1\nabc   1000\n"


def test_a_table():
    table = Table()
    for head, justify in (("name", "left"), ("n", "right"), ("text", "left")):
        table.add_column(head, justify=justify)
    table.add_row("first", "1", "words that take more room than there is")
    table.add_row("second", "10,000", "")
    assert printed(table, columns=80).splitlines() == [
        "name         n  text",
        "first        1  words that take more room than there is",
        "second  10,000",
    ]
    # The widest column of text gives way; numbers never do.
    assert printed(table, columns=34).splitlines() == [
        "name         n  text",
        "first        1  words that take",
        "                more room than",
        "                there is",
        "second  10,000",
    ]
    assert printed(table, columns=5).splitlines()[-1] == "second  10,000"


def test_the_heads_of_numbers_are_wrapped_where_there_is_no_room():
    table = Table()
    table.add_column("name")
    table.add_column("a long head", justify="right")
    table.add_row("a name of words", "1,000")
    assert printed(table, columns=40).splitlines()[0] == "name             a long head"
    assert printed(table, columns=22).splitlines() == [
        "name                 a",
        "                  long",
        "                  head",
        "a name of words  1,000",
    ]


def test_a_long_word_in_a_table_is_broken():
    table = Table(head=False)
    for _ in range(2):
        table.add_column()
    table.add_row("abcdefghijklmnopqr st", "[red]abcdefghi[/]jklm")
    assert printed(table, columns=22).splitlines() == ["abcdefghij  abcdefghij", "klmnopqr    klm", "st"]


@given(
    st.lists(st.lists(st.text("ab ", max_size=30), min_size=3, max_size=3), min_size=1, max_size=6), st.integers(30, 90)
)
def test_no_text_of_a_table_is_lost(rows, columns):
    table = Table(head=False)
    for _ in range(3):
        table.add_column()
    for row in rows:
        table.add_row(*row)
    shown = printed(table, columns=columns)
    assert sorted("".join(shown.split())) == sorted("".join("".join(row).replace(" ", "") for row in rows))
    assert all(len(line) <= columns for line in shown.splitlines())


@pytest.mark.parametrize(
    ("environment", "is_terminal", "has_styles"),
    [
        ({}, False, False),
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_where_styles_are_written(monkeypatch, environment, is_terminal, has_styles):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    out.isatty = lambda: is_terminal
    Console(out).print("[red]x[/]")
    assert ("\x1b" in out.getvalue()) == has_styles
    monkeypatch.setenv("COLUMNS", "33")
    assert Console(out).width == 33
