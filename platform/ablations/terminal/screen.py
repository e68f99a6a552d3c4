"""The console that every command prints on: no text that reaches it can steer the terminal (`made_visible`)."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from ablations.terminal.visible import made_visible


class Screen(Console):
    """A Rich console, of which only Rich itself moves the cursor and colours text."""

    def print(self, *objects: Any, **options: Any) -> None:
        """As Rich prints; of a string Rich would drop some control characters, so they are made visible before."""
        super().print(*(made_visible(one) if isinstance(one, str) else one for one in objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of anything that is printed; pieces with control codes come from Rich, as in a live table."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(made_visible(segment.text), segment.style)
