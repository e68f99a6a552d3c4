r"""Short answers to questions of fact against several gold answers, as in NaturalQuestions.

Exact match and F1 are those of SQuAD (arXiv 1606.05250): lower case, no punctuation, no articles, one space. What is
compared is, in the text after the thinking part, the last \boxed{}, else what follows the last "answer is" or
"answer:", else the whole text. An answer with no word in it, or of more than 1,000 characters, is unparsable.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scalerl.verifiers.math_answer import last_boxed
from scalerl.verifiers.math_reading import MAX_ANSWER_CHARS

if TYPE_CHECKING:  # the judges load without torch
    from scalerl.rollout import Outcome

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SAID = re.compile(r"\banswer\W{0,4}(?:is\b|:)([^\n]*)", re.IGNORECASE)


def verify_qa(answer: str, gold: Sequence[str], *, min_f1: float = 1.0) -> "Outcome":
    """Judge what follows the thinking part: right on an exact match, or, with `min_f1` under 1, at that F1.

    `verify_qa("The answer is the Eiffel Tower.", ("Eiffel Tower", "La Tour Eiffel"))` is "right".
    """
    if isinstance(gold, str) or not gold:
        raise ValueError(f"gold answers: {gold!r}; a sequence of at least one text is needed")
    if not 0.0 < min_f1 <= 1.0:
        raise ValueError(f"min_f1 is {min_f1}; it must be above 0 and at most 1")
    stated = stated_answer(answer)
    if len(stated) > MAX_ANSWER_CHARS or not normalise(stated):
        return "unparsable"
    if exact_match(stated, gold) or (min_f1 < 1.0 and f1(stated, gold) >= min_f1):
        return "right"
    return "wrong"


def stated_answer(response: str) -> str:
    """The part of a response that is its answer."""
    boxed = last_boxed(response)
    if boxed is not None:
        return boxed
    said = [text for text in _SAID.findall(response) if normalise(text)]
    return said[-1].strip() if said else response.strip()


def normalise(text: str) -> str:
    """SQuAD's normal form: `normalise("The  U.S.A., an ally")` is "usa ally"."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: Sequence[str]) -> bool:
    """Whether the answer is one of the gold answers in normal form."""
    return normalise(answer) in map(normalise, gold)


def f1(answer: str, gold: Sequence[str]) -> float:
    """Largest F1 = 2 p r / (p + r) against a gold answer; p and r are the shares of the two texts' words in common."""
    return max(_f1(normalise(answer).split(), normalise(one).split()) for one in gold)


def _f1(answer: list[str], gold: list[str]) -> float:
    if not answer or not gold:
        return float(answer == gold)
    common = sum((Counter(answer) & Counter(gold)).values())
    return 2 * common / (len(answer) + len(gold))
