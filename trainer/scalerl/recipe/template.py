r"""Prompt templates: text in which {name} stands for a part of the problem or for a column of its row.

    fill("{context}\n\n{question}", {"question": "Who?"}, {"context": "He."}.get)    "He.\n\nWho?"

A template is filled in one pass, so braces in inserted text have no meaning. A name after a LaTeX command, `^` or `_`
is the command's argument, as in `\boxed{answer}`, unless it is a part of the problem. `{{name}}` writes {name}.
"""

import re
from collections.abc import Callable, Mapping

_BRACES = re.compile(r"\{\{(?P<written>[^{}\n]+)\}\}|\{(?P<name>[^{}\n]+)\}")
_COMMAND = re.compile(r"(?:\\(?![nrt]\Z)(?P<name>[A-Za-z]+)\*?(?:\[[^\]]*\])?|[\^_])(?P<earlier>(?:\{[^{}]*\})*)\Z")
"""Excludes the line break of a needlessly quoted text, which is a backslash and an n."""


def fill(template: str, parts: Mapping[str, str], column: Callable[[str], str | None]) -> str:
    """The template with its parts and columns inserted; braces stay if `column` returns None for their content."""

    def put(match: re.Match[str]) -> str:
        command = _COMMAND.search(template, 0, match.start())
        if match["written"] is not None and command is None:
            return f"{{{match['written']}}}"
        name = match["name"] or match["written"]
        is_argument = command is not None and not (command["earlier"] and command["name"] in ("begin", "end"))
        found = parts[name] if name in parts else None if is_argument else column(name)
        return match[0] if found is None else match[0].replace(f"{{{name}}}", found)

    return _BRACES.sub(put, template)


def shows(template: str, part: str) -> bool:
    """True if a template has a place for this part of a problem."""
    mark = "\0"
    return mark in fill(template, {part: mark}, lambda _: None)
