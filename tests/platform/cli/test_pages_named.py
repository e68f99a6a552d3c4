"""What a command found names what opens its pages, at a terminal alone."""

import shlex
from io import StringIO

import pytest
from fixtures_home import make_home

from ablations.cli import forecast, read, shelf, shown_comparison
from ablations.terminal.screen import Screen


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("command", ["compare", "list", "forecast"])
def test_the_command_that_opens_the_pages_stands_below(command, is_terminal, tmp_path, monkeypatch):
    home = tmp_path / "my home"
    make_home(home)
    file = StringIO()
    screen = Screen(file=file, force_terminal=is_terminal, no_color=True, width=80)
    room, shown = {
        "compare": (shown_comparison, read.compare),
        "list": (shelf, shelf.list),
        "forecast": (forecast, forecast.forecast),
    }[command]
    monkeypatch.setattr(room, "console", lambda **_: screen)
    shown(home=home)
    named = f"dashboard  platform dashboard --home {shlex.quote(str(home))}"
    assert (file.getvalue().splitlines()[-1] == named) == is_terminal
    assert named in file.getvalue() or not is_terminal
