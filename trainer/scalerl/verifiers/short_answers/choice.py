r"""The letter of a multiple-choice answer, as in ARC and HellaSwag.

The letter is searched after the thinking part in this order; within one rule the last letter counts: the last \boxed{}
and text tagged <answer>; a statement; a line that consists of the letter; lines that start with a letter and a mark, if
one is left besides A, B and so on; the only letter in brackets; the text of exactly one choice. Only the last 100,000
characters are read, in time proportional to their number. docs/judges.md has the rules.
"""

import re
import unicodedata
from collections.abc import Sequence

from scalerl.rollout import Judgement
from scalerl.verifiers.mathematics.answer import DENIED_BEFORE, TAGGED, as_it_stands, last_boxed
from scalerl.verifiers.mathematics.prose import in_english
from scalerl.verifiers.short_answers.qa import AS_TEXT, normalise, readings

MAX_CHARS = 100_000
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_MARKS = re.compile(
    r"[*`\"$“”„«»✅✔✓☑∴→⇒➜👉]|=>|(?<=[\s(])'(?=[A-Za-z]'\W)|(?<=[\s(]'[A-Za-z])'(?!\w)|\\[()\[\]]|\\(?=[\s,;!])|\\(?:rm|bf|it|sf|tt)\b|(?<![A-Za-z0-9])_{1,3}|_{1,3}(?![A-Za-z0-9])"
)
_ALONE = (
    r"[(\[]?(?:(?P<{0}capital>(?-i:[A-Z]))(?![\w'À-ɏ])"
    r"|(?P<{0}small>(?-i:[a-z]))(?=\s{{0,3}}(?:[)\].,;:!?]|\n|$)(?!\w)))[)\]]?"
)
_UNSURE = re.compile(
    r"(?i)\b(?:incorrect|wrong|false|worst|least \w+|(?<!no )(?<!a )doubt|(?:cannot|can't) say|whether|if|were"
    r"|would have)\b[^.?!\n]{0,40}$",
)
_OTHERS = re.compile(
    r"(?i)\b(?:many|some|most|people|others?|students|they|nobody|no one|you (?:might|may|could))\s+(?:\w+\s+)?$",
)
_TAKEN_BACK = re.compile(
    r"(?i)\b(?:sorry|scratch that|wait|i meant|no|otherwise|unless|in which case|or it might be|or maybe"
    r"|actually(?=\W{1,3}(?:it(?:['’]s| is)\W)?[(\[]?(?-i:[A-Z])[)\]]?[.!]?\s*$))\b\W{1,3}"
    r"(?:[a-z']+\W{1,3}){0,6}?[(\[]?(?P<other>(?-i:[A-Z]))(?![\w'])",
)
_ARTICLE = re.compile(r"A\s+(?!because|since|as|for|and|or|is|here|due|by|which|that|in|it|would|seems)[a-z]{2,}")
_FILLER = (
    r"(?:\W{0,5}\b(?:i (?:think|believe|guess)|"
    r"the|option|choice|letter|answer|it|must|should|would|will|be|is|clearly|definitely|most|likely|probably|"
    r"therefore|thus|indeed|number|correct|best|right|one|labell?ed|marked|simply|just|actually|now|again|that"
    r"|my|final|la|le|el|die|der|das|in|this|case|to|me|seems|appears|of|by|given)\b){0,8}\W{0,5}"
)
_CUE = (
    r"(?:(?:\b(?:answer|choice|option|pick|letter"
    r"|(?:one|statement) that (?:is )?\w+|ans|solution|response|jawaban|cevap|antwoord)\b"
    r")(?:\s(?:correct[ae]?|corrett?a|richtig|juste|finale?"
    r"|(?:among|of|from) (?:these|them|those|the (?:options|choices)))\b)?\W{0,4}"
    r"(?:\b(?:is|was|(?:would|should|must|might|could|will|can only|has to|seems to|appears to) be)\b|[:：=–—-]))"
)
_PICKED = (
    r"\b(?:(?:choose|chose|pick|picked|select|selected|take|go(?:ing)? with|went with|opt for|vote for"
    r"|settle on|answer with|say)"
    r"|(?:is|was|matches|corresponds to)(?= (?:the )?(?:option|choice|letter)\b)"
    r"|leav(?:es|ing)(?: us with| only| just)?|only|so|therefore|thus|hence|but(?: rather)?|it(?:'s| is"
    r"| must be| has to be| should be)|probably|definitely|clearly|certainly|surely)"
)
_STATED = re.compile(
    rf"(?i){_CUE}{_FILLER}{_ALONE.format('a')}"
    rf"|{_PICKED}{_FILLER}(?<![\w']){_ALONE.format('b')}(?=\W{{0,3}}(?:[.;!\n—–]|$|here|over|as"
    r"|because|since|for|works|fits|holds|remains|it is))"
    rf"|(?<![\w'])(?<!\d ){_ALONE.format('c')}\W{{0,3}}(?:it is(?=[.!\s]*(?:\n|$))"
    r"|(?:is|must be|has to be|seems|looks|would be|should be)\W{1,3}"
    r"(?:clearly |definitely |probably |indeed |obviously |likely |actually |therefore |thus |also )?"
    r"(?:the |my |our )?(?:only |one |most |single )?(?:correct|right|best|better|true|answer|pick|guess"
    r"|proper|final answer|appropriate|accurate|likely|suitable|valid|choice|(?<= )one(?=[.!\s]*(?:\n|$)))\b)",
)
_TAKES = ("choose", "chose", "pick", "select", "take", "go", "went", "opt", "vote", "settle", "only", "say")
_OF_ALL = ("anything ", "all ", "everything ", "each ", "every ")
_DENIED = re.compile(
    r"(?i)(?:\bnot|\bcannot|n't|\bnever|\bneither|\bnor|\bexclude[sd]?|\beliminat\w+|\brul\w+ out|\breject\w*"
    r"|\bwrong\w*|\bincorrect\w*|\bwithout|\bexcept|\banything but|\bother than|\bif)\W{0,3}(?:\w+\W{1,2}){0,2}$",
)
_DENIED_AFTER = re.compile(
    r"(?i)[\s)\].,]{0,4}(?:(?:only )?(?:if|unless|when)\b)|[\s)\].,]{0,4}(?:which )?(?:is|was|would be|can|must"
    r"|does|do)\W{0,2}(?:not\b|n't|wrong|incorrect|false|out\b|excluded|eliminated|too\b)",
)
_ONLY_IF = re.compile(r"\s(?:only )?(?:if|unless|were)\b|(?<=would be right) for\b", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?<![A-Z])[.?!:]\s{1,2}[(\[]?([A-Z])[)\].!]{0,3}\s*$")
_WITH_TEXT = re.compile(r"\s*\(?([A-Z])\)? \((?![^()]*\bor\b)[^()]{1,200}\)[.!]?\s*")
_REJECTED = re.compile(
    r"(?i)\W{1,4}(?:this |it )?(?:wrong|incorrect|false|not )"
    r"|[^;\n]{0,200}?\b(?:is|are|was|looks|seems) (?:wrong|incorrect|false|not (?:right|correct|true))\b",
)
_SAID = re.compile(_CUE, re.IGNORECASE)
_LONE_LINE = re.compile(
    r"^[\s#>(\[<⟨-]{0,8}(?:(?:[Ff]inal )?(?:[Aa]nswer(?: choice)?|[Oo]ption|[Cc]hoice)\s{1,2}[(\[]?)?"
    r"([A-Za-z])[\s.)\]:>⟩]{0,6}$",
    re.MULTILINE,
)
_LABELLED = re.compile(
    r"^[\s#>(\[-]{0,8}(?:(?:[Oo]ption|[Cc]hoice)\s)?([A-Za-z])(?:[)\].:]{1,2}\s{0,4}\S|\)|\s?[-–—]\s)", re.MULTILINE
)
_CHOICES_IN_ORDER = re.compile("|".join(LETTERS[:last] for last in range(len(LETTERS), 1, -1)))
"""Labels A, B and so on of lines that quote or discuss the choices."""
_OR_ANOTHER = re.compile(
    r"(?i)[\s)\]}.,'’]{0,6}(?:\b(?:or|and|then|as well as|o|oder|ou|y|und|et)\b|[,/&?]"
    r"|(?=\([A-Z]\)))(?:\W{0,3}\b(?:option|choice|perhaps|maybe|possibly|also|both)\b){0,2}[\s(\[{]{0,4}"
    r"(?-i:[A-HJ-Z])(?![\w'])(?!\W{0,3}(?:is|was|are|would|can|does|do|has)\b)",
)
_A_LETTER = re.compile(r"(?<![\w'])[A-Z](?![\w'])|^\W*[a-z]\W*$")
_BEFORE_A_TEXT = re.compile(r"^[\s)\]}.,;:]{0,8}(?:[-–—=]\s)?[\s(\[{]{0,4}")
_BRACKETED = re.compile(r"\((?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer) )?([A-Z])\)")


def judge_choice(answer: str, gold: str, *, num_choices: int, texts: Sequence[str] = ()) -> Judgement:
    """Judge the text after the thinking part: `judge_choice("The answer is (B).", "B", num_choices=4)` is right.

    `texts` are the choices as the prompt shows them; the text of exactly one choice then counts as its letter.

    ValueError unless `gold` is the letter of one of the choices.
    """
    choices = LETTERS[:num_choices]
    if len(gold) != 1 or gold not in choices:
        raise ValueError(f"gold choice {gold!r}: expected one of the letters {choices[:1]} to {choices[-1:]}")
    answer = as_it_stands(answer[-MAX_CHARS:])
    letter, dropped = chosen_letter(answer, texts)
    taken_back = list(_TAKEN_BACK.finditer(_plain(answer[-2_000:])))
    if letter is None or letter not in choices or (taken_back and taken_back[-1]["other"] != letter):
        return Judgement("unparsable")
    if _has_text_of_another(answer, letter, texts):
        return Judgement("unparsable")
    return Judgement("right" if letter == gold else "wrong", dropped)


def chosen_letter(response: str, texts: Sequence[str] = ()) -> tuple[str | None, str]:
    """Letter selected by the response, as a capital (None if no rule finds one), and the text dropped for it."""
    marked, is_decided = _marked_letter(response, texts)
    if is_decided:
        return marked, ""
    plain = _plain(response)
    if not _A_LETTER.search(plain) and (letter := _of_text(plain, texts)):
        return letter, ""
    said = list(_SAID.finditer(plain))
    told = (plain[said[-1].end() :] if said else plain).strip()
    if said and len(told.split()) > 1 and (letter := _of_text(told, texts)):
        return letter, ""
    if stated := _stated(in_english(plain), texts):
        return (None if stated == "?" else stated), ""
    alone = [found[1].upper() for found in _LONE_LINE.finditer(plain)]
    if alone:
        return alone[-1], ""
    if found := _LAST_WORD.search(plain) or _WITH_TEXT.fullmatch(plain):
        return found[1], ""
    labels = [
        found[1].upper()
        for found in _LABELLED.finditer(plain)
        if not (_OR_ANOTHER.match(plain, found.end(1)) or _REJECTED.match(plain, found.end(1)))
    ]
    if left := _CHOICES_IN_ORDER.sub("", "".join(labels)):
        return (left[-1] if len(set(left)) == 1 else None), ""
    if not labels and (letter := _first_letter(plain.strip())) and not _REJECTED.match(plain.strip(), 1):
        return letter, ""
    bracketed = {
        found[1]
        for found in _BRACKETED.finditer(plain)
        if not _DENIED.search(plain[max(0, found.start() - 60) : found.start()])
    }
    if len(bracketed) == 1:
        return bracketed.pop(), "words around the letter"
    found = readings(told) if len(told) <= 1_000 and not labels else ()
    letter = next((letter for one, _ in found if (letter := _of_text(one, texts))), None)
    if not letter and not labels:
        letter = _stated(_in_letters(plain[-1_000:], texts), ()).strip("?")
    return letter or None, ""


def _marked_letter(response: str, texts: Sequence[str]) -> tuple[str | None, bool]:
    """Letter in the last box or tag, and True if that decides; a mark may decide that no letter is chosen."""
    boxed = last_boxed(response)
    if boxed == "" or re.search(r"\bnot\s*\$?\\boxed\s*\{[^{}]*\}\W*$", response[-200:]):
        return None, True
    tagged = TAGGED.findall(response)
    for content in (boxed, tagged[-1] if tagged else None):
        if content is not None:
            plain = _plain(content)
            alone = _LONE_LINE.fullmatch(plain.strip())
            if not _A_LETTER.search(plain) and (letter := _of_text(plain, texts)):
                return letter, True
            if letter := (alone and alone[1].upper()) or _first_letter(plain) or _of_text(plain, texts):
                return letter, True
            if _first_letter(plain, undecided=True):
                return None, True
    return None, False


def _in_letters(text: str, texts: Sequence[str]) -> str:
    """The text with the letter of each choice in place of its words: "I choose B" for "I choose zinc"."""
    for one, letter in sorted(zip(texts, LETTERS, strict=False), key=lambda choice: -len(choice[0])):
        if re.search("[A-Za-z]{3}", one):
            text = re.sub(rf"(?i)(?<!\w)(?:the )?{re.escape(one)}(?!\w)", letter, text)
    return text


def _plain(text: str) -> str:
    """Text without Markdown and LaTeX marks, with full-width letters as ordinary ones."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _MARKS.sub("", AS_TEXT.sub(r"\1", text))


def _stated(text: str, texts: Sequence[str]) -> str:
    """Letter of the last statement; "?" if it names several, "" without a statement."""
    last = ""
    for found in _STATED.finditer(text):
        name = next(name for name, value in found.groupdict().items() if value)
        letter, start, end = found[name], found.start(name), found.end(name)
        if name.endswith("small") and not name.startswith("a"):
            continue
        between = text[max(found.start(), start - 60) : start]
        before = text[max(0, found.start() - 40) : found.start()]
        told = re.split(r"[.?!\n]", before)[-1] if name.startswith("c") or found[0].lower().startswith(_TAKES) else ""
        if _DENIED.search(between) or _DENIED.search(told) or _ARTICLE.match(text, start):
            continue
        words = found[0].lower()
        concludes = words.startswith(("so", "therefore", "thus", "hence"))  # what is wrong stands before it
        if (_UNSURE.search(before) and not concludes) or DENIED_BEFORE.search(before):
            continue
        if before.lower().endswith(_OF_ALL) or (words.startswith(_TAKES) and _OTHERS.search(before)):
            continue
        if _DENIED_AFTER.match(text, end) or (name.startswith("c") and _ONLY_IF.match(text, found.end())):
            continue
        is_several = _OR_ANOTHER.match(text, end) and _text_beside(text[end:], texts) != letter.upper()
        last = "?" if is_several or (name.startswith("c") and _joined_before(text, start)) else letter.upper()
    return last


def _joined_before(text: str, start: int) -> bool:
    """True if another letter and a conjunction come before: "A and B are right", "A or B is right"."""
    return bool(re.search(r"(?<![\w'])[A-Z][)\]]?\s{1,2}(?:and|or)\s{1,2}[(\[]?$", text[max(0, start - 12) : start]))


def _first_letter(text: str, *, undecided: bool = False) -> str | None:
    """The single letter at the start of the text, as a capital; with `undecided` also one of several."""
    rest = text.lstrip(" \t\n([{-#>.:")
    if not rest[:1].isascii() or not rest[:1].isalpha() or rest[1:2].isalnum() or rest[1:2] in ("'", "’", "+", "#"):
        return None
    if _OR_ANOTHER.match(rest, 1):
        return rest[0].upper() if undecided else None
    follows = rest[1:].lstrip(")]}")
    is_marked = follows[:1] in (".", ":", ")", ",", "-") or rest[1:2] in (")", "]", ".")
    is_alone = not any(character.isalnum() for character in follows)
    return rest[0].upper() if undecided or is_marked or is_alone else None


def _text_beside(rest: str, texts: Sequence[str]) -> str | None:
    """Letter of the choice whose text is all that follows a letter in its line: "(copper)." or "- copper"."""
    return _of_text(_BEFORE_A_TEXT.sub("", rest.partition("\n")[0]).rstrip(" \t)]}.,;:。"), texts)


def _has_text_of_another(answer: str, letter: str, texts: Sequence[str]) -> bool:
    """True if the last letter with text beside it, as in "(B) zinc", is this letter with another choice's text."""
    stated = last_boxed(answer)
    plain = _plain(answer if stated is None else stated)
    marked = list(re.finditer(rf"(?<![\w']){letter}(?![\w'])", plain))
    if not marked:
        return False
    start, end = marked[-1].span()
    before = _of_text(plain[:start].rstrip(" (").rpartition("\n")[2], texts)
    return (_text_beside(plain[end:], texts) or before) not in (None, letter)


def _of_text(text: str, texts: Sequence[str]) -> str | None:
    """Letter of the only choice with this text."""
    if len(text) > 1_000 or not (wanted := normalise(text)):
        return None
    plain = [_plain(one) for one in texts]
    if (unit := _shared_unit(plain)) and re.fullmatch(r"(?:[A-Za-z]\s*=\s*)?-?[\d.,]+", _plain(text).strip(" .")):
        wanted = normalise(f"{_plain(text).rpartition('=')[2].strip(' .')} {unit}")
        text = f"{text} {unit}"
    wanted = wanted.replace(" ", "")
    places = [
        i for i, one in enumerate(plain) if normalise(one).replace(" ", "") == wanted and _signs(one) == _signs(text)
    ]
    return LETTERS[places[0]] if len(places) == 1 else None


def _shared_unit(texts: Sequence[str]) -> str:
    """What follows the number in every choice: "m/s" of "10 m/s" and "20 m/s"; "" if they differ in that."""
    units = {found[1] if (found := re.fullmatch(r"-?[\d.,]+\s*([^\d\s].*)", one.strip())) else "" for one in texts}
    return units.pop() if len(units) == 1 else ""


def _signs(text: str) -> list[str]:
    """Signs that change a formula or an amount; those of a text in words, such as COVID-19, are none."""
    is_in_words = re.search(r"[A-Za-z]{3,}", re.sub(r"\\[A-Za-z]+", "", text))
    return re.findall(r"[%$€£¥]" if is_in_words else r"[-−+=<>^*/%€£¥]", text)
