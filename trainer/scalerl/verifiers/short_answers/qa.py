r"""Short answers to factual questions, against several gold answers, as in NaturalQuestions.

Exact match and F1 are those of SQuAD (arXiv 1606.05250), without the marks that change an answer; `qa_values` compares
what is written in other words. Compared are the last \boxed{}, else text tagged <answer>, else the text after the last
"answer is", else all of it: whole, then without words around the answer. docs/judges.md has the rules.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from scalerl.rollout import Judgement
from scalerl.verifiers.mathematics.answer import TAGGED, as_it_stands, last_boxed
from scalerl.verifiers.mathematics.prose import in_english
from scalerl.verifiers.mathematics.reading import MAX_ANSWER_CHARS
from scalerl.verifiers.short_answers.qa_values import (
    in_short,
    other_currency,
    same_initials,
    same_person_or_thing,
    same_value,
)

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_DASHES = re.compile("[‐-―−﹘﹣－-]")
_KEPT = re.compile(
    r"(?<=\d)[./^:](?=\d)|(?<!\d)\.(?=\d)|(?<=\d),(?=\d)(?!\d{3}(?!\d))|(?<=\w)[+#]+(?=[\s+#.,;:!?)]|$)|(?:^|(?<=[\s\"'(]))[-−](?=\$?\.?\d)"
)
_SAID = re.compile(r"\banswer\W{0,4}(?:is\b\s*:?|:)", re.IGNORECASE)
AS_TEXT = re.compile(r"\\(?:text|math)(?:bf|rm|it|sf|normal)?\s{0,3}\{([^{}]{0,1000})\}")
_UNSURE = re.compile(
    r"\b(?:incorrect|wrong|false|worst|least \w+|doubt|cannot|can't|whether|if)\b[^.?!\n]{0,50}$", re.IGNORECASE
)
_INTRODUCED = re.compile(
    r"(?i)^(?:1[.)]\s(?!\d|[\s\S]*\n\s*2[.)]))?(?:(?:therefore|thus|so|hence),?\s)?"
    r"(?:i(?:['’]m| am) not (?:\w+ )?(?:sure|certain),? but )?"
    r"(?:i (?:think|believe|guess|would say)(?: that)?\s|i['’]d say\s)?"
    r"(?:(?:it|that|this|he|she|they|there)(?:['’]s| is| was| are| were| must be| would be)\s+)?"
    r"(?:the (?:colou?r|number|process of)\s)?",
)
"""Words before an answer: "It is Lima"."""
_IN_A_YEAR = re.compile(r"^(?:in )?(?:the year )?(?=\d)|^(?-i:(?:[Ii]n|on|at)\s+(?=(?:the\s+)?[A-Z]))", re.IGNORECASE)
_TITLE = re.compile(
    r"^(?:president|king|queen|pope|emperor|saint|dr|mr|mrs|ms|sir|prof|professor)\.?\s+(?=\S+\s+\S)", re.IGNORECASE
)
_LAST_NAME_FIRST = re.compile(r"(\w+), (\w+(?: \w\.?)?)\.?")
_IN_BRACKETS = re.compile(r"(?P<before>[^()]*[A-Za-z][^()]*)\s\([^()]+\)\.?")
_YES_OR_NO = re.compile(
    r"(yes|no)(?=\s*[,.;:!–—]|\s-\s)(?!\.\s*\d)(?!.*\b(?:but|actually|wait|however|sorry|or)\b)",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(
    r"[.!?](?=\s+[A-Z\"“(])|\n|;\s|[,\s]\s*(?:which|because|since|who(?:se)?)\s|,\s+(?:the|also|formerly"
    r"|an?(?! (?:\w+ )?(?:town|city|village|county|pupil|student|rival)\b))\s"
)
_ABBREVIATED = re.compile(r"(?:^|[\s.])(?:[A-Z]|St|Dr|Mr|Mrs|Ms|Mt|Ft|No|Jr|Sr|Rev|Gen|Col|Lt|vs|etc)$")
_SAID_OF = re.compile(
    r"(?i)(?!.*\b(?:while|whose)\b.*\b(?:is|was)\b)(?:[^.?!]|(?<=\b[A-Z])\.)+"
    r"\s(?:(?:is|was|are|were|(?:must|would|should|has to) be)\s"
    r"|(?:has|took)\s(?=\d|\w+ (?:\w+s|people)\b))\s*(?P<said>[^.?!]+)[.!]?",
)
_VERB = (
    r"(?:took place|fell|began|started|ended"
    r"|born|held|won|written|built|fought|made|known|found|(?:discover|invent|publish|paint|creat|compos"
    r"|direct|found|design|sign|locat|situat|establish|introduc|propos|formulat|develop|happen|occurr|di|liv|mov)ed)"
)
_HAPPENED = re.compile(
    rf"(?i)(?!.*\b(?:and|before|after|nobody|near|almost|formerly)\b)(?>[^.?!,;]+?\s(?:(?:is|was|are|were)\s(?:{_VERB}\s)?|{_VERB}\s)"
    r"(?:by|in|on|at|called|named|known as|as|to)\s+)(?P<said>[^.?!,;]+)[.!]?",
)
"""A sentence that ends with the answer, after its first verb: "It was written by Ovid", "She was born in Rome"."""
_CORRECTED = re.compile(
    r"(?:[^.?!]*(?:\bnot|n['’]t)\b[^.?!]*\bbut\s+|[^.?!]*\?\s*no,?\s+(?:it|that|this)(?:['’]s| is| was)\s+)"
    r"(?P<said>[^.?!]+)[.!]?",
    re.IGNORECASE,
)
_DOES = (
    r"(?:(?:is|was|are|were)\s+(?:the|an?|called|known)\s(?!wrong\b|incorrect\b|former|previous|second\b|only\b)"
    r"|(?:wrote|painted|discovered|invented|directed|composed|founded|designed|built|developed|published|formulated)\s)"
)
_SUBJECT = re.compile(
    rf"(?P<said>[A-Z](?:[^.?!,;]|(?<=\b[A-Z])\.){{1,80}}?)\s+{_DOES}"
    r"(?!.*\b(?:and|or|but|instead|however|not|never|before|after|until|answer|guess|anagram|opposite|help|rival|friend"
    r"|pupil|student|brother|sister|son|daughter|wife|husband|neighbou?r)\b)[^?!;]*[.!]?"
)
"""A sentence whose subject answers: "Lima is the capital of Peru", "Ovid wrote it"."""
_ASIDE = re.compile(
    r",?\s(?:and\s)?not\s(?:(?!but\b)[^,.;?!])+(?=[.!]?$)|,\s(?:i (?:think|believe|guess)|of course)(?=[.!]?$)",
    re.IGNORECASE,
)
"""The end of a sentence that denies something or speaks about the speaker."""
_TAKEN_BACK = re.compile(
    r"(?i)\b(?:no|not|never|hardly|could|might|may|doubt|except|un?like|wait|actually|rather|instead|sorry|correction"
    r"|wrong|or|but|however|maybe|perhaps|alternatively)\b|n['’]t",
)


def judge_qa(answer: str, gold: Sequence[str], *, min_f1: float = 1.0) -> Judgement:
    """Judge the text after the thinking part: right on an exact match, or, with `min_f1` below 1, at that F1.

    `judge_qa("The answer is the Eiffel Tower.", ("Eiffel Tower", "La Tour Eiffel"))` is right.

    ValueError without a gold answer, or if `min_f1` is not in (0, 1].
    """
    if isinstance(gold, str) or not gold:
        raise ValueError(f"gold answers: {gold!r}; expected a sequence of at least one text")
    if not 0.0 < min_f1 <= 1.0:
        raise ValueError(f"min_f1 is {min_f1}; it must be above 0 and at most 1")
    stated = AS_TEXT.sub(r"\1", stated_answer(as_it_stands(answer)))
    if len(stated) > MAX_ANSWER_CHARS or not normalise(stated):
        return Judgement("unparsable")
    for text, dropped in readings(stated):
        if exact_match(text, gold) or any(_is_same(text, one) for one in gold):
            return Judgement("right", dropped)
    return Judgement("right" if min_f1 < 1.0 and f1(stated, gold) >= min_f1 else "wrong")


def _is_same(answer: str, gold: str) -> bool:
    """True if both name the same thing in other words."""
    return (
        same_value(answer, gold)
        or same_initials(answer, gold)
        or same_person_or_thing(answer, gold)
        or exact_match(_TITLE.sub("", answer), [_TITLE.sub("", gold)])
    )


def stated_answer(response: str) -> str:
    """The answer in a response."""
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed
    if tagged := TAGGED.findall(response):
        return tagged[-1].strip()
    response = response if _SAID.search(response) else in_english(response)
    for said in reversed(list(_SAID.finditer(response))):
        if _UNSURE.search(response, max(0, said.start() - 60), said.start()):
            continue
        if normalise(rest := response[said.end() :].strip().partition("\n")[0]):
            return response[said.end() :].strip() if len(response) - said.end() <= MAX_ANSWER_CHARS else rest.strip()
    return response.strip()


def readings(stated: str) -> Iterator[tuple[str, str]]:
    """The answer, then shorter versions of it, each with the text dropped."""
    yield stated, ""
    bare = _IN_A_YEAR.sub("", _INTRODUCED.sub("", stated.strip(" *_\"'`")))
    yield bare, "words before the answer"
    if found := _YES_OR_NO.match(bare):
        yield found[1], "text after the answer"
        return
    yield _TITLE.sub("", bare), "words before the answer"
    if found := _LAST_NAME_FIRST.fullmatch(bare):
        yield f"{found[2]} {found[1]}", ""
    if (found := _IN_BRACKETS.fullmatch(bare)) and not _TAKEN_BACK.search(bare, found.end("before")):
        yield found["before"], "text after the answer"
    whole = _ASIDE.sub("", in_english(stated.strip(" *_\"'`")))
    if whole != stated and not _TAKEN_BACK.search(whole):
        yield _INTRODUCED.sub("", whole), "words around the answer"
    is_plain = not (_TAKEN_BACK.search(whole) or _UNSURE.search(whole))
    for pattern in (_CORRECTED, _SAID_OF, _HAPPENED)[: 3 if is_plain else 1]:
        if found := pattern.fullmatch(whole):
            yield found["said"], "words before the answer"
            if end := _END.search(found["said"]):
                yield found["said"][: end.start()], "words around the answer"
    if is_plain and (found := _SUBJECT.fullmatch(whole)):
        yield found["said"], "text after the answer"
    for end in _END.finditer(bare):
        if not (end[0] == "." and _ABBREVIATED.search(bare[: end.start()])):
            if not _TAKEN_BACK.search(bare, end.start()):
                yield bare[: end.start()].strip(" *_\"'`"), "text after the answer"
            return


def normalise(text: str, hyphen: str = "") -> str:
    """SQuAD's normal form: `normalise("The  U.S.A., an ally")` is "usa ally"; `hyphen` replaces hyphens."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    text = text.replace("&", " and ")
    kept = {found.start(): found[0] for found in _KEPT.finditer(text)}
    written, i, is_accented = [], 0, False
    while i < len(text):
        if i in kept:
            written.append(kept[i].strip(" \"'(").replace("−", "-"))
            i += len(kept[i])
            continue
        category = unicodedata.category(text[i])
        if category[0] not in "MC":
            is_accented = unicodedata.name(text[i], "").startswith(("LATIN", "GREEK", "CYRILLIC"))
        if _DASHES.match(text[i]):
            written.append(" " if text[i - 1 : i].isdecimal() and text[i + 1 : i + 2].isdecimal() else hyphen)
        elif category[0] not in "PSMC" or text[i].isspace() or (category[0] == "M" and not is_accented):
            written.append(text[i])
        i += 1
    return " ".join(_ARTICLES.sub(" ", "".join(written)).split())


def exact_match(answer: str, gold: Sequence[str]) -> bool:
    """True if the answer is a gold answer in normal form, with a hyphen as nothing or as a space."""
    forms = _forms(answer)
    return any(forms & _forms(one) and not other_currency(answer, one) for one in gold)


def _forms(text: str) -> set[str]:
    return {in_short(normalise(text, hyphen)) for hyphen in ("", " ")} - {""}


def f1(answer: str, gold: Sequence[str]) -> float:
    """Largest F1 = 2 p r / (p + r) against a gold answer; p and r are the shares of the two texts' words in common."""
    return max(_f1(normalise(answer).split(), normalise(one).split()) for one in gold)


def _f1(answer: list[str], gold: list[str]) -> float:
    if not answer or not gold:
        return float(answer == gold)
    common = sum((Counter(answer) & Counter(gold)).values())
    return 2 * common / (len(answer) + len(gold))
