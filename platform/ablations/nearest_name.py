"""The nearest valid name to a mistyped one."""

import difflib
import re
from collections.abc import Iterable

MAX_NAMES = 24
"""Names that a message lists."""
_HELD_OUT = re.compile(r"(?<![a-z])(val|valid|validation|eval|evaluation|test)s?(?![a-z])", re.IGNORECASE)
_SCORE = re.compile(r"(?<![a-z])(score|acc|accuracy|reward|pass)s?(?![a-z])", re.IGNORECASE)


def did_you_mean(word: str, names: Iterable[str], plural: str, *, most: int | None = MAX_NAMES) -> str:
    """The nearest valid name, if any is near, and all valid names: "did you mean 'loss'? axes are: off_policy, loss".

    At most `most` are listed; None lists all.
    """
    by_lower_case = {name.lower(): name for name in names}
    if not by_lower_case:
        return f"there are no {plural}"
    near = difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    question = f"did you mean '{by_lower_case[near[0]]}'? " if near else ""
    listed = list(by_lower_case.values())
    more = f" and {len(listed) - most} more" if most is not None and len(listed) > most else ""
    return f"{question}{plural} are: {', '.join(listed[:most])}{more}"


def scores_first(columns: Iterable[str]) -> list[str]:
    """Columns sorted by name, those with held-out values first, then other scores."""
    return sorted(columns, key=lambda name: (not _HELD_OUT.search(name), not _SCORE.search(name), name))
