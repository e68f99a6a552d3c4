"""What a command found names what opens its pages, at a terminal alone."""

import shlex
from io import StringIO

import pytest
from fixtures_home import make_home

from ablations.cli import read, shown_comparison
from ablations.terminal.screen import Screen


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_command_that_opens_the_pages_stands_below(is_terminal, tmp_path, monkeypatch):
    home = tmp_path / "my home"
    make_home(home)
    file = StringIO()
    screen = Screen(file=file, force_terminal=is_terminal, no_color=True, width=80)
    monkeypatch.setattr(shown_comparison, "console", lambda **_: screen)
    read.compare(home=home)
    named = f"dashboard  platform dashboard --home {shlex.quote(str(home))}"
    assert (file.getvalue().splitlines()[-1] == named) == is_terminal
    assert named in file.getvalue() or not is_terminal
