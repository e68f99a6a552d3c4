"""User-written text shown literally: names, questions and messages are never markup on a page."""

import re

MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=])")
CONTROL = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}
"""Control characters as their pictures: ESC is \N{SYMBOL FOR ESCAPE}."""


def in_markdown(text: str) -> str:
    r"""`text` escaped so that Streamlit's Markdown shows it without markup, HTML or images. `a*b` is `a\*b`."""
    return MARKDOWN_SIGNS.sub(r"\\\1", visible(text))


def with_code(text: str) -> str:
    r"""`text` as by `in_markdown`, but with what it has between backticks as code: "Run `a*b`." keeps `a*b`."""
    parts = re.split(r"`([^`\n]+)`", text)
    return "".join(in_code(part) if place % 2 else in_markdown(part) for place, part in enumerate(parts))


def visible(text: str) -> str:
    """`text` with its control characters as pictures."""
    return text.translate(CONTROL)


def in_code(text: str) -> str:
    """`text` between backticks, whatever characters it has."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{visible(text)}{pad}{fence}"
