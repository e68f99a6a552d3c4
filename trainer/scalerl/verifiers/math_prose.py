"""The values that a sentence states: a formula between dollars, or a number with what follows it up to the next clause.

"It must be $x=3$, since $3>2$"  ->  "x=3"        "about 7 eggs, which is all of them"  ->  "7 eggs"
"not 42"                         ->  nothing: the words before it deny or change the value
"""

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(r"(?<=[.!?。])[*_\"')\]]*\s+(?=[A-Z$\\*\"(])|\n")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$((?:\\.|[^$\\])+)\$(?!\d)|\\\((.+?)\\\)|\\\[(.+?)\\\]")
_NUMBER = re.compile(
    r"(?<![\w.])(?P<value>[-−+]?\s?(?:US)?\\?[$€£¥₹]?\s?[-−]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[½¼¾⅓⅔⅛]|(?:\s\d+)?\s?/\s?\d+|\s?:\s?\d+(?:\s?:\s?\d+)*)?"
    r"(?:\s?(?:\\?%|[€£¥₹]|°|º|\^\\circ|\\pi|π))?)(?P<rest>[^\n]*)"
)
_CLAUSE_END = re.compile(
    r"[,;:()!?]|\.(?=\s|$)|\s[-–—]\s|\s(?:which|because|since|so|as|that|when|while|where|if|is|are|was|were|for|from|by|with|on|to|at|"
    r"after|before|during|this|the|he|she|they|we|it|has|have|will|would|can|who|altogether|each|every|total|and\s+(?!\d+\s*/)|than\s+expected)\b"
)
_CHANGED_BEFORE = re.compile(
    r"(?:\b(?:not|never|cannot|no longer|different from|other than|unlike|less than|more than|"
    r"fewer than|greater than|at least|"
    r"at most|over|under|above|below|between|up to|(?:mini|maxi)mum of|half of|twice|double|triple|"
    r"minus|negative|nor|or)|n't"
    r"|[*/^])(?:\s+(?:be|equal to|equal|exactly|quite|really|simply|just))*[\s$*_(\"'`]*$",
    re.IGNORECASE,
)
_CHANGED_AFTER = re.compile(
    r"\s*(?:,?\s*(?:or|to|nor|and)\s+[-\d$\\]|[+*/^×·÷]|\s-\s*\d)|\s+(?:or|and)\s+(?:more|less|fewer|so on)\b",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{3,}")
_TEXT_ARGUMENT = re.compile(r"\\(?:text\w*|math\w+|mbox|operatorname)\s*\{[^{}]*\}")
_MAX_CHARS = 1_000


def statements(text: str, place: str) -> Iterator[tuple[str, str]]:
    """What may be the answer, with what was left out for it: the first value of what was said, the last of prose."""
    sentences = [one.strip() for one in _SENTENCE_END.split(text) if one and one.strip()]
    if place == "prose":
        sentences.reverse()
    for sentence in sentences[:1] if place == "said" else sentences:
        bare = sentence.rstrip(" *_`.").lstrip(" *_`")
        if len(bare) > _MAX_CHARS:
            continue
        if not _LONG_WORD.search(_TEXT_ARGUMENT.sub("", _FORMULA.sub(" ", bare))) and not bare.count("$") > 2:
            yield bare, "" if len(sentences) == 1 else "sentences around the answer"
            return
        found = list(_values(bare))
        if found:
            value = found[0] if place == "said" and not (" but " in bare and not found[0]) else found[-1]
            if value:
                yield value, "words around the answer"
            return
        if place == "said":
            yield bare, ""


def changes_what_follows(text: str) -> bool:
    """Whether the words at the end deny or change a value that comes next: "it is not", "at least"."""
    return bool(_CHANGED_BEFORE.search(text[-60:]))


def _values(sentence: str) -> Iterator[str]:
    """Each value of a sentence, "" for one whose neighbours change it."""
    formulas = [
        (found.start(), found.end(), next(one for one in found.groups() if one))
        for found in _FORMULA.finditer(sentence)
    ]
    if formulas:
        joined: list[tuple[int, int, str]] = []
        for start, end, content in formulas:
            if joined and re.fullmatch(r"\s*(?:,|and|or|,\s*(?:and|or))\s*", sentence[joined[-1][1] : start]):
                joined[-1] = (joined[-1][0], end, f"{joined[-1][2]}, {content}")
            else:
                joined.append((start, end, content))
        for start, end, content in joined:
            rest = sentence[end:]
            stop = _CLAUSE_END.search(rest)
            words = rest[: stop.start()] if stop else rest
            is_changed = changes_what_follows(sentence[:start]) or _CHANGED_AFTER.match(rest)
            yield "" if is_changed else f"{content}{words}".rstrip(" .*_")
        return
    place = 0
    while found := _NUMBER.search(sentence, place):
        rest = found["rest"].lstrip("*_`")
        stop = _CLAUSE_END.search(rest)
        words = rest[: stop.start()] if stop else rest
        place = found.end("value")
        is_changed = changes_what_follows(sentence[: found.start()]) or _CHANGED_AFTER.match(rest)
        yield "" if is_changed else f"{found['value']}{words}".rstrip(" .*_")
