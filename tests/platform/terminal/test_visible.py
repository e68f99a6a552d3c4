"""Text that would steer a terminal is shown."""

import io
import unicodedata

import pytest
from rich.live import Live
from rich.text import Text

from ablations.terminal.screen import Screen
from ablations.terminal.visible import made_visible

HOSTILE = {
    "a\x1b]0;owned\x07b": "a\\x1b]0;owned\\x07b",  # ESC and BEL: the title of the window
    "90 %\r10 %": "90 %\\r10 %",  # CR: what was said before is written over
    "ab\x08\x08cd": "ab\\b\\bcd",
    "a\x9b2Jb": "a\\x9b2Jb",  # C1: CSI in one character
    "a\x7fb\x00c": "a\\x7fb\\x00c",
    "\u202etxt.exe\u2066": "\\u202etxt.exe\\u2066",  # bidi override and isolate
    "one\u2028two\ufeff": "one\\u2028two\\ufeff",
    "file\udcff": "file\\udcff",  # of a file name that is no UTF-8
    "tag\U000e0041": "tag\\U000e0041",
}
HARMLESS = "naïve β → 曲線 👍 a\tb\nc [red]x[/] \\x1b"


def test_what_would_steer_is_written_as_an_escape_and_other_text_stays_as_it_is():
    assert {text: made_visible(text) for text in HOSTILE} == HOSTILE
    assert made_visible(HARMLESS) == HARMLESS


def test_no_control_or_format_character_is_left_but_line_ends_tabs_and_those_inside_words():
    # The categories are Python's own tables of Unicode.
    text = "".join(chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp", "Cs"))
    left = [one for one in made_visible(text) if unicodedata.category(one) in ("Cc", "Zl", "Zp", "Cs")]
    assert left == ["\t", "\n"]
    turning = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in (
        "LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")]  # fmt: skip
    assert len(turning) == 9
    assert not set(turning) & set(made_visible("".join(turning)))


@pytest.mark.parametrize(("text", "shown"), [*HOSTILE.items()][:4])
def test_a_screen_prints_no_control_character_that_it_was_given(text, shown):
    out = io.StringIO()
    screen = Screen(file=out, width=80)
    screen.print(text, markup=False, highlight=False)
    screen.print(f"[red]{text}[/red]", highlight=False)
    screen.print(Text("a\x1b[2Jb\u202e", style="red"))
    assert out.getvalue() == f"{shown}\n{shown}\na\\x1b[2Jb\\u202e\n"


def test_rich_itself_still_colours_and_moves_the_cursor():
    out = io.StringIO()
    screen = Screen(file=out, width=80, force_terminal=True, color_system="standard", legacy_windows=False)
    with Live(console=screen, refresh_per_second=1, transient=True) as live:
        live.update("one\ntwo")
        live.refresh()
    screen.print(Text("red", style="red"))
    assert "\x1b[31mred\x1b[0m" in out.getvalue()
    assert "\x1b[1A" in out.getvalue()


@pytest.mark.parametrize(
    ("is_terminal", "said"), [(True, "the ceilings\ncannot-be told\n"), (False, "the ceilings cannot-be told\n")]
)
def test_sentences_break_between_words_and_on_a_terminal_only(is_terminal, said):
    out = io.StringIO()
    Screen(file=out, width=16, force_terminal=is_terminal, color_system=None).say("the ceilings cannot-be told")
    assert out.getvalue() == said
