"""The console on which every command prints; no printed text can control the terminal (`made_visible`)."""

import textwrap
from collections.abc import Iterable
from functools import partial
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ablations.terminal.own_command import as_called
from ablations.terminal.visible import made_visible


class Screen(Console):
    """A Rich console on which only Rich itself moves the cursor and colours text."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print like Rich, but show control characters in strings first, since Rich would drop some of them, and name
        `platform` as the user did."""
        shown = (as_called(made_visible(one)) if isinstance(one, str) else one for one in objects)
        super().print(*shown, **options)

    def say(self, text: str, *, style: str = "") -> None:
        """Print sentences: on a terminal broken between words only, elsewhere each on one line."""
        text = as_called(text)
        if self.is_terminal:
            fill = partial(textwrap.fill, width=self.width, break_long_words=False, break_on_hyphens=False)
            text = "\n".join(map(fill, text.split("\n")))
        self.print(text, style=style, highlight=False, markup=False, soft_wrap=True)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render with control characters made visible, except Rich's own control codes, as in a live table."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(made_visible(segment.text), segment.style)
