"""User-written text shown literally: names, questions and messages are never markup on a page."""

import re

from ablations.terminal.visible import made_visible

MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=])")


def in_markdown(text: str) -> str:
    r"""`text` escaped so that Streamlit's Markdown shows it without markup, HTML or images. `a*b` is `a\*b`."""
    return MARKDOWN_SIGNS.sub(r"\\\1", made_visible(text))


def with_code(text: str) -> str:
    r"""`text` escaped like in `in_markdown`, except that text between backticks is shown as code: "Run `a*b`." keeps
    `a*b`."""
    parts = re.split(r"`([^`\n]+)`", text)
    return "".join(in_code(part) if place % 2 else in_markdown(part) for place, part in enumerate(parts))


def in_code(text: str) -> str:
    """`text` as inline code, whatever characters it contains."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{made_visible(text)}{pad}{fence}"
