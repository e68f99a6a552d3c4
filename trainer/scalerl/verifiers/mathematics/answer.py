r"""Verdicts on mathematical answers, by math-verify, with limits that hold in any thread.

The answer is looked for after the thinking part, in this order: the last \boxed{} and boxes in a row with it; text
tagged
<answer>; the text after "####" in the last line; the text after the last "answer is" or "answer:"; a value at the very
end; anything that math-verify finds in the last 2,000 characters. docs/judges.md has the rules.
"""

import re
import unicodedata
from typing import TYPE_CHECKING

from scalerl.rollout import Judgement
from scalerl.verifiers.judge_worker import judge_within
from scalerl.verifiers.mathematics.notation import rewritings, squeeze, without_bold
from scalerl.verifiers.mathematics.prose import changes_what_follows, in_english, in_plain_prose, statements
from scalerl.verifiers.mathematics.reading import MAX_ANSWER_CHARS, NUMBER

if TYPE_CHECKING:  # neither torch nor SymPy is loaded before it is needed
    from scalerl.verifiers.mathematics.equality import StatedPlace

MAX_NUMBER_CHARS = 20_000
TAIL_CHARS = 2_000

_TOKENS = re.compile(r"(?P<box>\\(?:boxed|fbox|framebox)\s*\{)|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)(?:\s+|(?=\d))([^\s{}$\\]+)")
_LISTED = re.compile(
    r"(?:[\s$,;./&{}]|\\[^A-Za-z]|\\(?:text|math|[hm](?:box|space\*?\{)|q?quad|l(?:and|or)|vee|wedge)[a-z]*"
    r"|(?:and|or|even|also|perhaps|maybe|possibly|alternatively|either)\b"
    r"|(?:Case|Part|Answer)?\s*\(?(?:\d{1,2}|[a-eA-E]|i{1,3}|iv)[).:]|(?<=[\s,;$])[A-Za-z](?:_\{?\w\}?)?\s*=){0,40}"
)
"""Text allowed between boxes that form a list: separators, numbers of parts, names of unknowns."""
_AT_THE_END = re.compile(
    r"(?:^|=\s*|[^\s+\-−–*/^×·÷]\s+|\$)(?:\$(?P<inline>[^$]+)\$|\\\((?P<round>[^()]+)\\\)|(?P<number>-?\d[\d,]*(?:\.\d+)?))\s*\.?$"
)
_DISPLAYED = re.compile(r"(?:\\\[|\$\$)\s*((?:(?!\\\[|\$\$).){1,1000}?)\s*(?:\\\]|\$\$)", re.DOTALL)
_ONE_OF_SEVERAL = re.compile(r"(?:\$|\\\))\s*(?:,|,?\s*and|,?\s*or)\s*\$$")
TAGGED = re.compile(r"<(?:answer|\|begin_of_box\|)>(.*?)(?:</answer>|<\|end_of_box\|>|$)", re.IGNORECASE | re.DOTALL)
_LISTED_NUMBER = re.compile(r"(?:\d\s*(?:,|,?\s*(?:and|or))|\bout of|\d\s+in|\bsqrt)\s+$")
"""Text before a final number that shows it is not the answer by itself."""
_SENTENCE = re.compile(r"[A-Z][^$\\]*\s(?:is|are|was|were|equals|cost|costs|be)\s+(?P<value>\\?\$?-?[\d\\.][^,]*?)\.?")
_QUOTED = re.compile(r"""["“]([^"“”]+)["”]\.?|['‘]([^'‘’]+)['’]\.?""")
_SAID = re.compile(r"(?:answer|correct (?:option|choice))\W{0,4}(?:is\b\s*:?|[:：])", re.IGNORECASE)
_RETRACTED = re.compile(
    r"(?im)\b(?:correct|right|true|actual|real) (?:answer|value|result|one) (?:is|was|(?:should|must) be)\b"
    r"|(?:^|\b(?:that|this|it|which))\W{0,3}(?:s|is|was|seems|looks) (?:wrong|incorrect|not (?:right|correct))\b"
    r"|\b(?:that|this|it) (?:can['’]?t|cannot|can not) be (?:right|correct)\b"
    r"|^[^.!?\n]{0,20}\?\s*no\b|(?<!had )\bmade an? (?:mistake|error|slip)\b"
    r"|\bscratch that\b|\b(?:(?:actually|wait),? no(?=\W|$)(?! [a-su-z])|no,? wait\b)(?!.{0,20}\b(?:right|correct)\b)"
    r"|\bthe (?:value|answer|result) should be\b|\boops\b|\bon second thought|^\W{0,9}(?:edit|correction|update)\s*:"
    r"|\b(?:actually|sorry|i meant?|rather),? (?=(?:it(?:['’]s| is) )?[$*(]{0,3}-?\d)"
    r"|\bactually,? (?:it|that|this|the \w+) (?:should|must)\b"
    r"|\bI (?:forgot|missed|overlooked|miscalculated|miscounted|misread)\b"
    r"|\b(?:this|that|it) (?:ignores|misses|overlooks|forgets|omits|overcounts|undercounts|double[- ]counts)\b",
)
"""Words that retract the answer before them."""
_ALONE = (
    r"(?:[A-Za-z] ?= ?)?(?:\$\$?\s?[^$\n]{1,200}\s?\$\$?|\\[(\[]\s?[^\n]{1,200}\s?\\[)\]]"
    r"|[(\[][^()\[\]\n]{0,40}\d[^()\[\]\n]{0,40}[)\]]"
    r"|[-−]?(?:(?:US)?\\?[$€£¥₹])?-?\d[\d,./]*(?: ?(?:\\?%|°))?)(?: [a-z]+){0,2}"
)
_STATED = re.compile(
    r"(?im)^[ \t>*_`]*+(?:(?P<final>####[ \t]*+"
    r"(?![a-z]{2,}[ :]|(?:solution|answer|result|proof|check|verif|expla|conclu|summar|method|note)|\d+[.)][ \t])"
    r"(?:[^\n]{0,60}\d[^\n]{0,60}|[a-z]+)"
    rf"|(?:[\w ,]{{0,30}}\b)?(?:ans|answer|result|solution)[ *_]*(?:[:=]|\bis\b)[*_ ]*{_ALONE})"
    rf"|(?:[\w ,]{{0,30}}\b)?(?:total|sum|value|number|probability)(?: \w+)?[ *_]*(?:[:=]|\bis\b)[*_ ]*{_ALONE}"
    rf"|(?<=\*\*){_ALONE}(?=\*\*)|(?:(?:=>?|→) ?)?(?!\d[^\n]* [a-z]|[A-Za-z]|\W{{0,3}}\s?[^\n]*=){_ALONE})[ \t.*_`]*$"
)
"""A line that consists of an answer; text that continues after one that is not `final` is the answer instead."""
_CONCLUDED = re.compile(
    r"(?im)\b(?:so|thus|therefore|hence|then|now|but|however|finally|altogether|together|total|each|every|per|gives?"
    r"|must be|in all|we (?:get|have|find))\b[^.!?\n]{0,200}\d|\d[^.!?\n]{0,99}\b(?:altogether|in all|total|each|per)\b"
    r"|^\W{0,9}(?!note|check|remark|confidence)(?:[a-z]{1,15} ?){1,3}(?:[:=]|\bis) ?[$\\]{0,2}-?\d[\d.,]*\W{0,9}$"
)
"""Text that leads from one value to another."""
_VALUE_FOLLOWS = re.compile(
    r"\s*(?:therefore|thus|then|now|actually)?[\s*$(\[]*(?:\\[(\[])?\s*"
    r"(?:-?\d|\\(?:frac|sqrt|text|pi)|[A-J](?![\w'’]| [a-z]))"
)
_SUPPOSED = re.compile(r"(?i)\b(?:if|when|unless|suppose|assuming|whether)\b[^.\n]*$")
_DENIED_BOX = re.compile(
    r"(?i)(?:\bnot|n['’]t|\bnever|\bcannot|\bwrong|\bincorrect)\b(?:[^\w.,;:=\n?!]+(?!but|so|then|get|is|sure)\w+){0,2}[^\w.,;:=\n?!]*$"
)
_OPERATOR_BEFORE = re.compile(
    r"(?P<minus>(?:^|[=:$(]|\\[(\[])[ \t]*-$)|[\[{\s]-$"
    r"|(?:\d|[)}]|(?<![A-Za-z])[A-Za-z])[ \t]*(?:[+/^]|\\(?:cdot|times|pm|div)(?![A-Za-z]))[ \t]*$"
    r"|^[$\s]*\\(?:cdot|times|pm|div)[ \t]*$"
)
_OPERATOR_AFTER = re.compile(
    r"[ \t]*(?:\^(?!\s*\{?\s*\\(?:circ|text))|[-+*/][ \t]*[\d\\]|\\(?:cdot|times|pm|div)(?![A-Za-z]))"
)
"""Text that makes a box part of a formula: -\\boxed{12}, \\boxed{12}^2."""
_CONSTANT_AFTER = re.compile(r"[ \t]*\+[ \t]*([CK])(?![\w^])(?=\s*(?:[.,$]|\\[)\]]|$))")
_HEDGED = re.compile(
    r"(?i)\b(?:could|might|may)(?: also| well| instead| equally| just as)* be\b\W{1,4}(?:[\d\\]|[A-J]\b)"
)
_OF_OTHERS = re.compile(r"(?i)\b(?:reference|golden|gold|wrong|incorrect|initial|naive|previous)[\s*]+$")
"""Phrases that attribute an answer to something other than the response: "the reference answer is"."""
_END_OF_PROOF = re.compile(r"\$?(?:\\(?:blacksquare|square|qed|Box|checkmark)(?![A-Za-z])|[∎□■]|Q\.E\.D\.)\s*\$?\s*$")
_NO_VALUE = re.compile(
    r"(?i)(?:(?:indeed|therefore|thus|then|also|now)\s+)?(?:correct|right|verified|confirmed|consistent|reasonable|valid|unique"
    r"|clear|as follows)\b[^\d$\\]*",
)
"""Text after "the answer is" that is not an answer."""
DENIED_BEFORE = re.compile(
    r"(?i)(?:\b(?:not|never|cannot)|n['’]t)\s+(?:really\s+)?"
    r"(?:think|believe|say|agree|true|sure|certain|the case|mean|clear)"
    r"\b[^.!?\n,;:]*$|\b(?:doubt|suppose|assume|assuming|if|whether)\b[^.!?\n,;:]*$",
)
"""Words that deny that "the answer is" what follows."""
_UNKNOWN = r"\$?[A-Za-z]\s*=\s*-?[\w./√()]+\$?"
_STYLED = re.compile("[\U0001d400-\U0001d7ff]+")
_HIDDEN = re.compile(
    r"(?<![\w}\\])~~(?=\S)[^~\n]{0,200}~~(?![\w\\])|<!--.{0,300}?-->|<(del|strike)>.{0,300}?</\1>", re.DOTALL
)
"""Struck-out text, and comments that no reader sees."""
_ENDS = rewritings(
    (rf"^{_UNKNOWN}\.?$", r"\g<0>"),
    (
        rf"(?<![^\s$]){_UNKNOWN}(?:(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+){_UNKNOWN})+(?=\.?$)",
        lambda found: re.sub(r"(?:\s*,)?\s+(?:and|or)\s+", ", ", squeeze(found[0].replace("$", ""))),
    ),
    (
        r"(?<!\S)(?:-?[\d.]+\s?[<≤]=?\s?)?[A-Za-z]\s?(?:[<>]=?|[≤≥≠])\s?-?[\d./√]+(?=\.?$)"
        r"|(?<!\S)-?[\d.]+\s?[<≤>≥]=?\s?[A-Za-z](?=\.?$)",
        r"\g<0>",
    ),
    (r"^-?\d+(?:\.\d+)?(?:[ \t]+-?\d+(?:\.\d+)?){2,}$", lambda found: f"({','.join(found[0].split())})"),
    (r"^\d+(?:\s+to\s+\d+)+(?=\.?$)", lambda found: re.sub(r"\s+to\s+", ":", found[0])),
)
"""Unknowns with their values, an inequality, a row of numbers or a ratio at the end of a text."""


def judge_math(answer: str, gold: str, *, time_limit_s: float, reads_prose: bool = True) -> Judgement:
    r"""Judge the text after the thinking part against a gold answer in any form that `gold_answer` reads.

    `judge_math(r"It is \boxed{4}.", "#### 4", time_limit_s=5.0)` is `Judgement("right")`. The limit is on the CPU time
    of judging; the first call also starts the worker, which takes a second or two.
    """
    wanted = gold_answer(gold)
    stated, place = final_answer(as_it_stands(answer), reads_prose=reads_prose)
    if not stated or (too_long(stated) and place == "marked"):
        return Judgement("unparsable")
    asked = {"answer": stated, "gold": wanted, "place": place}
    return judge_within("mathematics.equality", asked, time_limit_s=time_limit_s)


def gold_answer(text: str) -> str:
    r"""Answer of a reference solution: its last \boxed{}, the text after its last "####", text tagged <answer>, the
    text after "answer is" or at its end, else all of it.

    ValueError if that is empty or too long.
    """
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
    """The response without struck-out text, comments, and everything from <think> to the last </think>; a thought that
    never ends hides the rest, unless the rest ends with a box."""
    response = _STYLED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), response)
    before, opened, rest = response.partition("<think")
    _, closed, after = rest.rpartition("</think")
    if closed:
        response = before + after.partition(">")[2]
    elif opened and ("\\boxed" not in rest or re.search("[A-Za-z]", rest.rpartition("}")[2])):
        response = before
    return _HIDDEN.sub("", response)


def as_it_stands(response: str) -> str:
    """The response without its thinking, and without an answer that it retracts."""
    response = without_thought(response)
    boxes = _boxes(response)
    stated = [found.end() for pattern in (_SAID, _STATED) for found in pattern.finditer(response)]
    end = boxes[-1][2] if boxes else max(stated, default=None)
    after = response[end + 1 :] if end else ""
    if taken_back := _RETRACTED.search(after):
        return after[taken_back.end() :]
    is_restated = boxes and (TAGGED.search(after) or any(_states(after, found) for found in _SAID.finditer(after)))
    is_denied = boxes and after and _DENIED_BOX.search(response[max(0, boxes[-1][0] - 60) : boxes[-1][0]])
    return after if is_restated or is_denied else response


def _states(text: str, found: re.Match[str]) -> bool:
    """True if "the answer is" is followed by a value and is no supposition."""
    before = text[max(0, found.start() - 200) : found.start()]
    is_doubted = _SUPPOSED.search(before) or DENIED_BEFORE.search(before) or _OF_OTHERS.search(before)
    return not is_doubted and bool(_VALUE_FOLLOWS.match(text, found.end()))


def too_long(answer: str) -> bool:
    """True if an answer is too long to be read."""
    if len(answer) <= MAX_ANSWER_CHARS:
        return False
    return len(answer) > MAX_NUMBER_CHARS or not NUMBER.fullmatch(answer)


def final_answer(response: str, *, reads_prose: bool = True) -> "tuple[str, StatedPlace]":
    """Answer stated by the response ("" for none), and its place; an answer in "prose" still has to be found.

    Without `reads_prose` only marked answers count: in a box, in tags, after "####", after "answer:" in the last line,
    or alone.
    """
    boxed = last_boxed(response)
    if boxed is not None:
        return squeeze(_with_its_formula(response, boxed)), "marked"
    if tagged := TAGGED.findall(response):
        return squeeze(without_bold(tagged[-1])), "said"
    response = _without_remarks(response.strip())
    response = unquoted(_DISPLAYED.sub(r"\[\1\]", without_bold(response)).strip())
    last_line = response.rpartition("\n")[2]
    if "####" in last_line:
        return squeeze(last_line.rpartition("####")[2]), "marked"
    if not (reads_prose or _says_the_answer(response)):
        return "", "said"
    tail = response
    if len(tail) > TAIL_CHARS:  # the first word of the tail may be the end of a longer word
        tail = re.sub(r"^\S*", "", tail[-TAIL_CHARS:])
    tail = in_plain_prose(_END_OF_PROOF.sub("", in_english(tail)))
    if (said := _last_said(tail)) or said is None:
        return squeeze(said or ""), "said"
    for pattern, form in _ENDS:
        if (found := pattern.search(tail)) and not changes_what_follows(tail[: found.start()]):
            return squeeze(found.expand(form) if isinstance(form, str) else form(found)), "said"
    if (
        (end := _AT_THE_END.search(tail))
        and not changes_what_follows(tail[: end.start("number")])
        and not _ONE_OF_SEVERAL.search(tail[: end.start("inline")])
        and not (end["number"] and _LISTED_NUMBER.search(tail[: end.start("number")]))
    ):
        return squeeze(end["inline"] or end["round"] or end["number"]), "said"
    return squeeze(tail), "prose"


def _says_the_answer(response: str) -> bool:
    """True if the last line says "the answer is" or "answer:", the line above it ends so, or nothing else is there."""
    if len(response.split()) == 1 or re.fullmatch(_ALONE, response.strip(" .")):
        return True
    *_, above, last = "", "", *(in_english(line) for line in response[-TAIL_CHARS:].split("\n") if line.strip())
    ends_so = any(not above[found.end() :].strip(" *") for found in _SAID.finditer(above))
    return ends_so or bool(_SAID.search(last))


def _without_remarks(response: str) -> str:
    """The response up to the last line that consists of an answer, if what follows is a remark on it."""
    *_, last = (None, *_STATED.finditer(response))
    if last is None:
        return response
    rest = response[last.end() :]
    is_restated = any(_states(rest, found) for found in _SAID.finditer(rest))
    goes_on = is_restated or (not last["final"] and _CONCLUDED.search(rest))
    return response if goes_on else response[: last.end()]


def _with_its_formula(response: str, boxed: str) -> str:
    r"""The last box with a sign or constant outside it, `x = -\boxed{12}` or `\boxed{x^2} + C`; "" if it is part of any
    other formula, or denied."""
    boxes = _boxes(response)
    start, _, end = boxes[-1] if boxes else (0, 0, None)
    if end is None:
        return boxed
    before, after = response[max(0, start - 60) : start].rpartition("\n")[2], response[end + 1 :]
    operator = _OPERATOR_BEFORE.search(before)
    if (operator and not operator["minus"]) or _DENIED_BOX.search(before) or _OPERATOR_AFTER.match(after):
        return ""
    if operator:
        return f"-({boxed})"
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
