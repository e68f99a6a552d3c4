r"""Verdicts on mathematical answers, by math-verify, with limits that hold in any thread.

The last answer stated after the thinking part is judged. "The answer is 4" after a box counts more than the box; a box
that is denied ("it is not"), or a factor or power in a formula, is no answer. The search has this order:

1. the last \boxed{} or \fbox{}; boxes separated only by a comma, "and" or "or" form a list;
2. the text after "####" in the last line, as in GSM8K;
3. the text after the last "answer is" or "answer:" within the last 2,000 characters;
4. a number, or a formula between $ $ or \( \), at the very end;
5. anything that math-verify finds in the last 2,000 characters.

Unparsable are a box that never closes, an answer of more than 1,000 characters (a run of white space counts once; a
number may have 20,000), and an answer that is neither mathematics nor words. `math_equal` defines equality;
`judge_worker` enforces the time limit.
"""

import re
import unicodedata
from typing import TYPE_CHECKING

from scalerl.rollout import Judgement
from scalerl.verifiers.judge_worker import judge_within
from scalerl.verifiers.math_notation import squeeze, without_bold
from scalerl.verifiers.math_prose import changes_what_follows, in_english, in_plain_prose, statements
from scalerl.verifiers.math_reading import MAX_ANSWER_CHARS, NUMBER

if TYPE_CHECKING:  # neither torch nor SymPy is loaded before it is needed
    from scalerl.verifiers.math_equal import StatedPlace

MAX_NUMBER_CHARS = 20_000
TAIL_CHARS = 2_000

_TOKENS = re.compile(r"(?P<box>\\(?:boxed|fbox|framebox)\s*\{)|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s+|(?=\d))([^\s{}$\\]+)")
_LISTED = re.compile(
    r"(?:\s|\$|\\[()\[\]\\]|\\text\s*\{\s*(?:and|or)\s*\}|and\b|or\b|[,;./&]|\\q?quad|\\[ ,;:]"
    r"|(?:Case|Part|Answer)?\s*\(?(?:\d{1,2}|[a-eA-E]|i{1,3}|iv)[).:]|(?<=[\s,;$])[A-Za-z](?:_\{?\w\}?)?\s*=){0,30}"
)
"""Text allowed between boxes that form a list: separators, numbers of parts, names of unknowns."""
_AT_THE_END = re.compile(
    r"(?:^|=\s*|[^\s+\-−–*/^×·÷]\s+|\$)(?:\$(?P<inline>[^$]+)\$|\\\((?P<round>[^()]+)\\\)|(?P<number>-?\d[\d,]*(?:\.\d+)?))\s*\.?$"
)
_DISPLAYED = re.compile(r"(?:\\\[|\$\$)\s*((?:(?!\\\[|\$\$).){1,1000}?)\s*(?:\\\]|\$\$)", re.DOTALL)
_ONE_OF_SEVERAL = re.compile(r"(?:\$|\\\))\s*(?:,|,?\s*and|,?\s*or)\s*\$$")
TAGGED = re.compile(r"<(?:answer|\|begin_of_box\|)>(.*?)(?:</answer>|<\|end_of_box\|>|$)", re.IGNORECASE | re.DOTALL)
_LISTED_NUMBER = re.compile(r"(?:\d\s*(?:,|,?\s*(?:and|or))|\bout of|\d\s+in|\bsqrt)\s+$")
"""What stands before a number at the end that is not the answer by itself."""
_SENTENCE = re.compile(r"[A-Z][^$\\]*\s(?:is|are|was|were|equals|cost|costs|be)\s+(?P<value>\\?\$?-?[\d\\.][^,]*?)\.?")
_QUOTED = re.compile(r"""["“]([^"“”]+)["”]\.?|['‘]([^'‘’]+)['’]\.?""")
_SAID = re.compile(r"(?:answer|correct (?:option|choice))\W{0,4}(?:is\b\s*:?|[:：])", re.IGNORECASE)
_RETRACTED = re.compile(
    r"(?i)\b(?:correct|right|true|actual|real) (?:answer|value|result|one) (?:is|was|(?:should|must) be)\b"
    r"|(?:^|\b(?:that|this|it|which))\W{0,3}(?:s|is|was|seems|looks) (?:wrong|incorrect|not (?:right|correct))\b"
    r"|\b(?:that|this|it) (?:can['’]?t|cannot|can not) be (?:right|correct)\b"
    r"|^[^.!?\n]{0,20}\?\s*no\b|(?<!had )\bmade an? (?:mistake|error|slip)\b"
    r"|\bscratch that\b|\b(?:(?:actually|wait),? no(?=\W|$)(?! [a-su-z])|no,? wait\b)(?!.{0,20}\b(?:right|correct)\b)"
    r"|\bthe (?:value|answer|result) should be\b|\boops\b|\bon second thoughts?\b"
    r"|^\W*(?:edit|correction|update)\s*:|\bactually,? (?:it|that|this|the \w+) (?:should|must)\b"
    r"|\bI (?:forgot|missed|overlooked|miscalculated|miscounted|misread)\b"
    r"|\b(?:this|that|it) (?:ignores|misses|overlooks|forgets|omits|overcounts|undercounts|double[- ]counts)\b",
)
"""What takes back the answer before it."""
_VALUE_FOLLOWS = re.compile(
    r"\s*(?:therefore|thus|then|now|actually)?[\s*$(\[]*(?:\\[(\[])?\s*"
    r"(?:-?\d|\\(?:frac|sqrt|text|pi)|[A-J](?![\w'’]| [a-z]))"
)
_SUPPOSED = re.compile(r"(?i)\b(?:if|when|unless|suppose|assuming|whether)\b[^.\n]*$")
_DENIED_BOX = re.compile(
    r"(?i)(?:\bnot|n['’]t|\bnever|\bcannot|\bwrong|\bincorrect)\b(?:[^\w.,;:=\n?!]+(?!but|so|then|get|is|sure)\w+){0,2}[^\w.,;:=\n?!]*$"
)
_OPERATOR_BEFORE = re.compile(
    r"(?:^|[=$(\[{\s])-$|(?:\d|[)}]|(?<![A-Za-z])[A-Za-z])[ \t]*(?:[+/^]|\\(?:cdot|times|pm|div)(?![A-Za-z]))[ \t]*$"
    r"|^[$\s]*\\(?:cdot|times|pm|div)[ \t]*$"
)
_OPERATOR_AFTER = re.compile(
    r"[ \t]*(?:\^(?!\s*\{?\s*\\(?:circ|text))|[-+*/][ \t]*[\d\\]|\\(?:cdot|times|pm|div)(?![A-Za-z]))"
)
"""What makes a box a part of a formula: -\\boxed{12}, \\boxed{12}^2."""
_MINUS_BEFORE = re.compile(r"(?:^|[=:$(]|\\[(\[])[ \t]*-[ \t]*$")
_CONSTANT_AFTER = re.compile(r"[ \t]*\+[ \t]*([CK])(?![\w^])(?=\s*(?:[.,$]|\\[)\]]|$))")
_HEDGED = re.compile(
    r"(?i)\b(?:could|might|may)(?: also| well| instead| equally| just as)* be\b\W{1,4}(?:[\d\\]|[A-J]\b)"
)
_OF_OTHERS = re.compile(r"(?i)\b(?:reference|golden|gold|wrong|incorrect|initial|naive|previous)\W+$")
"""Whose answer is not the one stated: "the reference answer is"."""
_END_OF_PROOF = re.compile(r"\$?(?:\\(?:blacksquare|square|qed|Box|checkmark)(?![A-Za-z])|[∎□■]|Q\.E\.D\.)\s*\$?\s*$")
_NO_VALUE = re.compile(
    r"(?i)(?:(?:indeed|therefore|thus|then|also|now)\s+)?(?:correct|right|verified|confirmed|consistent|reasonable|valid|unique"
    r"|clear|as follows)\b[^\d$\\]*",
)
"""What "the answer is" is followed by if no answer follows."""
DENIED_BEFORE = re.compile(
    r"(?i)(?:\b(?:not|never|cannot)|n['’]t)\s+(?:really\s+)?"
    r"(?:think|believe|say|agree|true|sure|certain|the case|mean|clear)"
    r"\b[^.!?\n,;:]*$|\b(?:doubt|suppose|assume|assuming|if|whether)\b[^.!?\n,;:]*$",
)
"""What denies that "the answer is" what follows."""
_UNKNOWN = r"\$?[A-Za-z]\s*=\s*-?[\w./√()]+\$?"
_UNKNOWNS = re.compile(rf"(?<![^\s$]){_UNKNOWN}(?:(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+){_UNKNOWN})+(?=\.?$)")
"""Values of several unknowns, or of one, at the end of a text."""
_STYLED = re.compile("[\U0001d400-\U0001d7ff]+")
_HIDDEN = re.compile(
    r"(?<![\w}\\])~~(?=\S)[^~\n]{0,200}~~(?![\w\\])|<!--.{0,300}?-->|<(del|strike)>.{0,300}?</\1>", re.DOTALL
)
"""What is struck out, and comments that no reader sees."""
_INEQUALITY = re.compile(
    r"(?<!\S)(?:-?[\d.]+\s?[<≤]=?\s?)?[A-Za-z]\s?(?:[<>]=?|[≤≥≠])\s?-?[\d./√]+(?=\.?$)|(?<!\S)-?[\d.]+\s?[<≤>≥]=?\s?[A-Za-z](?=\.?$)"
)
_ROW = re.compile(r"-?\d+(?:\.\d+)?(?:[ \t]+-?\d+(?:\.\d+)?){2,}")
_IN_RATIO = re.compile(r"(\d+(?:\s+to\s+\d+)+)\.?")


def judge_math(answer: str, gold: str, *, time_limit_s: float) -> Judgement:
    r"""Judge the text after the thinking part against a gold answer in any form that `gold_answer` reads.

    `judge_math(r"It is \boxed{4}.", "#### 4", time_limit_s=5.0)` is `Judgement("right")`. The limit is on the CPU time
    of judging; the first call also starts the worker, which takes a second or two.
    """
    wanted = gold_answer(gold)
    stated, place = final_answer(without_thought(answer))
    if not stated or (too_long(stated) and place == "marked"):
        return Judgement("unparsable")
    asked = {"answer": stated, "gold": wanted, "place": place}
    return judge_within("math_equal", asked, time_limit_s=time_limit_s)


def gold_answer(text: str) -> str:
    r"""Answer of a reference solution: its last \boxed{}, the text after its last "####", text tagged <answer>, the
    text after "answer is" or at its end, else all of it."""
    boxed = last_boxed(text)
    if boxed is not None or "####" in text:
        answer = squeeze(text.rpartition("####")[2] if boxed is None else boxed)
    else:
        answer = _of_a_phrase(squeeze(text))
    if not answer:
        raise ValueError(f"gold answer: nothing in \\boxed{{}}, after '####' or in the whole text: {text[-80:]!r}")
    if too_long(answer):
        raise ValueError(
            f"gold answer: {len(answer)} characters, but at most {MAX_ANSWER_CHARS} are read: {answer[:80]!r}"
        )
    return answer


def _of_a_phrase(text: str) -> str:
    """Value stated by a gold answer that is a sentence; the text itself otherwise."""
    if tagged := TAGGED.findall(text):
        text = tagged[-1].strip()
    text = re.sub(
        r"^(?:(?:Thus|So|Therefore|Hence|Then|Finally),?\s+)?"
        r"(?:A(?=\s*:(?!\s?[a-z]\b))|Ans|Answer|Final answer|Result|Solution)\.?\s*:\s*",
        "",
        without_bold(text),
        flags=re.IGNORECASE,
    )
    text = re.sub(r"^(?:Thus|So|Therefore|Hence|Then|Finally),?\s+(?=\S+\s*=)", "", text)
    if (said := _last_said(text)) and (found := next(statements(said, "said"), None)):
        text = found[0]
    elif (found := _SENTENCE.fullmatch(text)) is not None:
        text = found["value"]
    return re.sub(r"^=\s*", "", text)


def without_thought(response: str) -> str:
    """The response without what stands from <think> to the last </think>, is struck out, in a comment or taken back; a
    thought that never ends hides the rest, unless that ends with a box."""
    response = _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), response)
    before, opened, rest = response.partition("<think")
    _, closed, after = rest.rpartition("</think")
    if closed:
        response = before + after.partition(">")[2]
    elif opened and ("\\boxed" not in rest or re.search("[A-Za-z]", rest.rpartition("}")[2])):
        response = before
    response = _HIDDEN.sub("", response)
    boxes = _boxes(response)
    ends = [end for *_, end in boxes] or [found.end() for found in _SAID.finditer(response)]
    after = response[ends[-1] + 1 :] if ends and ends[-1] else ""
    if taken_back := _RETRACTED.search(after):
        return after[taken_back.start() :]
    is_restated = boxes and (TAGGED.search(after) or any(_states(after, found) for found in _SAID.finditer(after)))
    is_denied = boxes and after and _DENIED_BOX.search(response[max(0, boxes[-1][0] - 60) : boxes[-1][0]])
    return after if is_restated or is_denied else response


def _states(text: str, found: re.Match[str]) -> bool:
    """True if "the answer is" is followed by a value and is no supposition."""
    before = text[max(0, found.start() - 200) : found.start()]
    if _SUPPOSED.search(before) or DENIED_BEFORE.search(before) or _OF_OTHERS.search(before):
        return False
    return bool(_VALUE_FOLLOWS.match(text, found.end()))


def too_long(answer: str) -> bool:
    """True if an answer has more characters than are read."""
    if len(answer) <= MAX_ANSWER_CHARS:
        return False
    return len(answer) > MAX_NUMBER_CHARS or not NUMBER.fullmatch(answer)


def final_answer(response: str) -> "tuple[str, StatedPlace]":
    """Answer stated by the response ("" for none), and its place; an answer in "prose" still has to be found."""
    boxed = last_boxed(response)
    if boxed is not None:
        return squeeze(_with_its_formula(response, boxed)), "marked"
    response = response.strip()
    response = unquoted(_DISPLAYED.sub(r"\[\1\]", without_bold(response)).strip())
    if tagged := TAGGED.findall(response):
        return squeeze(tagged[-1]), "said"
    last_line = response.rpartition("\n")[2]
    if "####" in last_line:
        return squeeze(last_line.rpartition("####")[2]), "marked"
    tail = response
    if len(tail) > TAIL_CHARS:  # the first word of the tail may be the end of a longer word
        tail = re.sub(r"^\S*", "", tail[-TAIL_CHARS:])
    tail = in_plain_prose(_END_OF_PROOF.sub("", in_english(tail)))
    if (said := _last_said(tail)) or said is None:
        return squeeze(said or ""), "said"
    if re.fullmatch(rf"{_UNKNOWN}\.?", tail):
        return squeeze(tail), "said"
    if (unknowns := _UNKNOWNS.search(tail)) and not changes_what_follows(tail[: unknowns.start()]):
        return re.sub(r"(?:\s*,)?\s+(?:and|or)\s+", ", ", squeeze(unknowns[0].replace("$", ""))), "said"
    if (found := _INEQUALITY.search(tail)) and not changes_what_follows(tail[: found.start()]):
        return squeeze(found[0]), "said"
    if _ROW.fullmatch(tail):
        return f"({','.join(tail.split())})", "said"
    if found := _IN_RATIO.fullmatch(tail):
        return re.sub(r"\s+to\s+", ":", found[1]), "said"
    if (
        (end := _AT_THE_END.search(tail))
        and not changes_what_follows(tail[: end.start("number")])
        and not _ONE_OF_SEVERAL.search(tail[: end.start("inline")])
        and not (end["number"] and _LISTED_NUMBER.search(tail[: end.start("number")]))
    ):
        return squeeze(end["inline"] or end["round"] or end["number"]), "said"
    return squeeze(tail), "prose"


def _with_its_formula(response: str, boxed: str) -> str:
    r"""The last box with a sign or constant outside it, `x = -\boxed{12}` or `\boxed{x^2} + C`; "" if it is part of any
    other formula, or denied."""
    boxes = _boxes(response)
    start, _, end = boxes[-1] if boxes else (0, 0, None)
    if end is None:
        return boxed
    before, after = response[max(0, start - 60) : start].rpartition("\n")[2], response[end + 1 :]
    if _OPERATOR_BEFORE.search(before):
        return f"-({boxed})" if _MINUS_BEFORE.search(before) and not _OPERATOR_AFTER.match(after) else ""
    if _DENIED_BOX.search(before) or _OPERATOR_AFTER.match(after):
        return ""
    constant = _CONSTANT_AFTER.match(after)
    return f"{boxed} + {constant[1]}" if constant else boxed


def unquoted(text: str) -> str:
    """The text without quotation marks around all of it: `unquoted('"2 + 2 = 4"')` is "2 + 2 = 4"."""
    found = _QUOTED.fullmatch(text)
    return (found[1] or found[2]).strip() if found else text


def _last_said(text: str) -> str | None:
    """Rest of the line after the last "answer is" or "answer:" with text after it; None if it is denied."""
    for found in reversed(list(_SAID.finditer(text))):
        rest = text[found.end() :].partition("\n")[0].strip(" *")
        before = text[max(0, found.start() - 200) : found.start()]
        if rest and not _NO_VALUE.fullmatch(rest) and not _OF_OTHERS.search(before):
            return None if DENIED_BEFORE.search(before) or _HEDGED.search(text, found.end()) else rest
    return ""


def last_boxed(text: str) -> str | None:
    r"""Content of the last \boxed{} and of boxes listed with it; "" if it never closes, None without a box."""
    boxes = _boxes(text)
    if not boxes:
        bare = _BARE_BOX.findall(text)
        return bare[-1] if bare else None
    last_start, content, end = boxes[-1]
    if end is None or re.match(r"\{?\d", text[end + 1 : end + 3]):  # \boxed{4}2 is no value
        return ""
    listed = [text[content:end]]
    for start, content, end in reversed(boxes[:-1]):
        if end is None or not _LISTED.fullmatch(text, end + 1, last_start):
            break
        listed.append(text[content:end])
        last_start = start
    return ",".join(dict.fromkeys(content.strip() for content in reversed(listed)))


def _boxes(text: str) -> list[tuple[int, int, int | None]]:
    """Start of each box, and start and end of its content; the end is None if the box never closes.

    One pass over the text, so 10^5 opening braces take no longer than 10^5 letters.
    """
    starts: list[tuple[int, int]] = []
    ends: dict[int, int] = {}
    open_braces: list[int | None] = []
    for token in _TOKENS.finditer(text):
        if token["box"]:
            open_braces.append(len(starts))
            starts.append((token.start(), token.end()))
        elif token[0] == "{":
            open_braces.append(None)
        elif token[0] == "}" and open_braces and (box := open_braces.pop()) is not None:
            ends[box] = token.start()
    return [(start, content, ends.get(box)) for box, (start, content) in enumerate(starts)]
