"""Hides passwords and keys in commands, settings and messages before they are stored, printed or sent.

>>> without_secrets("no answer from http://ada:secret@mlflow:5000/api")
'no answer from http://***@mlflow:5000/api'
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"
_NAMES = (
    r"(?:[\w.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key"
    r"|credentials?|(?:access|api|auth|bearer|github|gitlab|hf|hub|huggingface|refresh|session|wandb)[_-]?token)"
    r"|(?-i:[A-Z0-9_]+_(?:KEY|TOKEN|PWD)))"
)
SECRET_NAME = re.compile(rf"[+-]*(?:{_NAMES}|(?:[\w-]+\.)*token)", re.IGNORECASE)
"""Names of settings, options and variables that hold a secret; `max_tokens` and `pad_token` do not count."""
_NAMED = (
    rf"(?:(?<![\w.])(?:{_NAMES}\s?=\s?|{_NAMES}(?:\\?['\"]:\s?|: +)|token=)"
    rf"|(?<![\w-])--(?:{_NAMES}|token)(?:[ =]|['\"]?(?:,\s|\n[ \t]*- +)))"
    r"(?!(?:null|none|true|false)\b|\$\{|(?<=: )[{\[|>])"  # no value, a variable's, and those with names of their own
)
IN_TEXT = re.compile(
    # User and password of a URL. One with an unencoded / ? or # is hidden too, but host:5000/path/@name is no user.
    r'(?P<url>://)(?:[^\s"<>/?#]+@|[^\s"<>/?#:]+:(?!\d+[/?#])[^\s"<>]*@)'
    # In YAML, words without quotes, and the lines below | or >.
    rf"|(?P<key>^(?P<indent>[ \t]*(?:- +)?){_NAMES}: +)"
    r"(?:[|>].*(?:\n(?P=indent)[ \t]+\S.*)+|\w[^\s,]*(?: +[^\s#]\S*)+)"
    rf"|(?P<name>{_NAMED})"
    r"(?:(?P<quoted>\\?['\"])(?:(?!(?P=quoted))(?:\\.|[^\\\n]))+(?P=quoted)(?:'[^'\n]*'|\"[^\"\n]*\")*"
    r"|(?P<quote>['\"]?)[^\s'\"&;,}]+?(?=\]*(?:[\s'\"&;,}]|$)))"
    r"|\b(?:hf_|gh[opsu]_|github_pat_|glpat-|sk-|xox[abp]-)[\w-]{16,}",
    re.IGNORECASE | re.MULTILINE,
)
SHORTEST_KEY = 19
"""Letters of the shortest key known by its own beginning: `sk-` and 16 more."""


def without_secrets(text: str) -> str:
    """The text with `***` for the user and password of each URL, and for each value whose name says that it is secret.

    Values are known in the forms `NAME=value`, `name: value` and `--name value`, and keys by their own beginning.
    """
    if len(text) < SHORTEST_KEY and not ("=" in text or ":" in text or "--" in text):
        return text  # most texts of a plan are ids and names
    return IN_TEXT.sub(_hide, text) if IN_TEXT.search(text) else text


def _hide(found: re.Match[str]) -> str:
    if found["url"]:
        return f"{found['url']}{HIDDEN}@"
    before, line = found["key"] or found["name"] or "", found.string.rfind("\n", 0, found.start()) + 1
    mark = before.rstrip(" ")[-1:] if before.endswith(" ") else ""
    is_key = mark == ":" and found.string[line : found.start()].strip()[-1:] in ("", "-", "{", ",")
    # YAML reads a bare * after a key, or as an item of a list, as a reference.
    quote = found["quoted"] or found["quote"] or ("'" if is_key or mark in (",", "-") else "")
    return f"{before}{quote}{HIDDEN}{quote if not found['quote'] else ''}"


def is_hidden(text: str) -> bool:
    """True for a setting whose secret has been replaced by `***`, which no run may be trained with."""
    return text == HIDDEN or text.endswith(f"={HIDDEN}") or f"://{HIDDEN}@" in text


def command_without_secrets(words: Iterable[str]) -> str:
    """A command line for a shell, with its arguments masked."""
    return shlex.join(values_without_secrets([*words]))


def values_without_secrets(values: Any) -> Any:
    """Plain data with every text masked; a value in a mapping, or after an option in a list, also by its name."""
    match values:
        case str():
            return without_secrets(values)
        case Mapping():
            return {name: _masked_value(name, value) for name, value in values.items()}
        case list() | tuple():
            before = ("", *values)
            return type(values)(
                _masked_value(name if str(name).startswith("-") else "", value)
                for name, value in zip(before, values, strict=False)
            )
    return values


def _masked_value(name: object, value: Any) -> Any:
    may_be = isinstance(value, str | int | float) and not isinstance(value, bool) and not str(value).startswith("${")
    return HIDDEN if may_be and value != "" and SECRET_NAME.fullmatch(str(name)) else values_without_secrets(value)
