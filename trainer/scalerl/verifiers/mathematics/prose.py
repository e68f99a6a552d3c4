"""Values stated in a sentence: a formula between dollars, or a number and its context up to the next clause.

"It must be $x=3$, since $3>2$"  ->  "x=3"        "about 7 eggs, which is all of them"  ->  "7 eggs"
"not 42"                         ->  nothing: the words before it deny or change the value
"""

import re
from collections.abc import Iterator

from scalerl.verifiers.mathematics.phrases import NO_SOLUTION
from scalerl.verifiers.mathematics.units import NUMBER_WORDS, number_of_words

_SENTENCE_END = re.compile(r"(?:(?<=[.!?。])|(?<=\\\]))[*_\"')\]]*\s+(?=[A-Z$\\*\"(])|\n")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$((?:\\.|[^$\\])+)\$(?!\d)|\\\((.+?)\\\)|\\\[(.+?)\\\]")
_ROOT = r"(?:\d+(?:\.\d+)?\s?)?(?:√|sqrt)\s?(?:\d+(?:\.\d+)?|\([^()]*\))"
_ONE = r"[-−]?\d+(?:\.\d+)?(?:/\d+)?"
_NUMBER = re.compile(
    rf"(?<![\w.√])(?P<value>[-−]?\d+(?:\.\d+)?\s?[x×·*]\s?10\s?\^\s?\{{?[-−+]?\d+\}}?|[-−]?(?:\([^()]*√[^()]*\)|(?:\d+\s?[-−+]\s?)?{_ROOT}(?:\s?[-−+]\s?(?:{_ROOT}|\d+))?)(?:\s?/\s?\d+)?"
    rf"|[(\[]\s*{_ONE}(?:\s*,\s*{_ONE})+\s*[)\]]"
    rf"|{_ONE}(?:,\s+{_ONE})*,?\s+(?:and|or)\s+{_ONE}(?![\d.,]*\d|\s*/)|{_ONE}(?:,\s+{_ONE})+(?=\s*\.?\s*$)"
    r"|(?:[-−+]\s?)?(?:(?:US)?\\?[$€£¥₹]\s?)?[-−]?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[½¼¾⅓⅔⅛]|(?:\s\d+)?\s?/\s?\d+|\s?:\s?\d+(?:\s?:\s?\d+)*)?"
    r"(?:\s?(?:\\?%|[€£¥₹]|°|º|\^\\circ|\\pi|π))?)(?P<rest>[^\n]*)"
)
_AMOUNTS = re.compile(
    r"(?<![\w.√])(?P<value>\d+ (?:hours?|hrs?|minutes?|mins?|dollars?|feet|foot|pounds?|yards?|weeks?|days?|years?),?"
    r" (?:and )?\d+ (?:minutes?|mins?|seconds?|secs?|cents?|inch(?:es)?|ounces?|oz|feet|days?|hours?|months?))"
    r"\b(?P<rest>[^\n]*)"
)
"""One amount in two units: 2 hours and 30 minutes."""
_YES_OR_NO = re.compile(
    r"(?:^|[.!?]\s+)(?:(?:So|Thus|Hence|Therefore),?\s+)?(yes|no)(?=[,.!;:]|\s[-–—]|$)", re.IGNORECASE
)
_IS_CALLED = re.compile(r"\b(?:is|are|was|were|be)\s+(?:(?:an?|the)\s+)?(?P<words>[A-Za-z][A-Za-z\d' -]{0,40})[.!]?$")
_NONE = re.compile(rf"(?i)(?:^|[.!]\s+|\b(?:has|have|there (?:are|is|exists?))\s){NO_SOLUTION}(?=[.!]?$|;)")
_NUMBER_WORD = (
    rf"(?:{'|'.join(word for word in (*NUMBER_WORDS, 'hundred', 'thousand', 'million', 'dozen') if ' ' not in word)})"
)
_IN_WORDS = re.compile(rf"\b{_NUMBER_WORD}(?:(?:-|\s+(?:and\s+|out\s+of\s+)?){_NUMBER_WORD})*\b(?!-)", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|when|unless|whether|suppose|assume|because|since|as)\b", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[,;:()!?]|\.(?=\s|$)|\s[-–—]\s|\s(?:which|because|since|so|as|that|when|while|where|if|is|are|was|were|for|from|by|with|on|to|at|"
    r"after|before|during|out\s+of|this|the|he|she|they|we|it|has|have|will|would|can|who|altogether|each|every|total|in\s+(?:total|all)|and\s+(?!\d+\s*/)|than\s+expected)\b"
)
_TEXT_OF_CHANGING = """
not never cannot can't isn't wasn't aren't don't doesn't won't hardly rarely barely scarcely maybe perhaps
possibly except excludes excluding exclude but multiple multiples divisible root square cube half third quarter
twice double triple factor power log logarithm wrong false incorrect less more fewer greater larger smaller
least most between over under above below than minus nor or neither either different other unlike no guess
unless without
"""
_CHANGING = frozenset(_TEXT_OF_CHANGING.split())
"""Words that deny or change a value shortly after them."""
_STEP = re.compile(r"^[ \t]*(\d{1,2})[.)]\s+(?=\S)", re.MULTILINE)
_BULLETS = re.compile(r":\s*((?:\n[ \t]*[-*•][ \t]+[^A-Za-z\n:=]{1,40}){2,20})$")
_FAREWELL = re.compile(
    r"(?i)(?:\n|(?<=[.!]))[ \t]*(?:let me (?:know|(?:double[- ]?)?check)|i hope (?:this|that)|feel free"
    r"|hope (?:this|that) helps|(?:note|remark|check|confidence)(?=:)|\(?checked|done in|(?:this|that) (?:took|use[ds])"
    r"|next is|the (?:other )?\d+ [a-z]+ (?:is|are|was|were)(?=[^\d\n]*$))\b[^\n]*$",
)
"""Text that may follow an answer without stating another."""
_CHANCE = re.compile(r"(?i)(\b(?:probability|chance|likelihood)\b[^.\n]{0,80}\b)(\d+) (?:out of|in) (\d+)(?![\d,.]*\d)")
_OR_MAYBE = r"(?:or|and)\s(?:possibly|maybe|perhaps|even)\b"
_ASIDE = re.compile(
    r"(?i),\s*(?:and\s)?(?:not|instead of|rather than)\s[^,;]*$|,?\s+(?:because|since|by\s[a-z]+ing)\s.*$|\s\((?!"
    + _OR_MAYBE
    + r")[^()]*\)$"
)
_BREAKDOWN = re.compile(
    r"(?i)(?P<value>\b(?:is|are|was|were|earn(?:ed|s)|makes?|made|costs?|paid|pays|spent|spends)\s[^\s:]*\d[^:]{0,30}):\s(?=[^:]*\d)[^:=]*\d[^:=]*$"
)
"""Text that breaks down the value before it: "$460: $400 base and $60 overtime"."""
_CONCLUDES = re.compile(r"=|\b(?:so|therefore|thus|hence|then|we get|are left)\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")
_TEXT_OF_ALLOWED = """
the a an of is are was be to it that total sum number value result answer final exactly about approximately
roughly around equal equals equivalent simply just only therefore thus so hence indeed now still actually
clearly obviously we get have has must should would will there they he she option choice correct my or and given
by x y z n k m a b c t s r usd rs dollars i think believe in all
"""
_ALLOWED = frozenset(_TEXT_OF_ALLOWED.split())
"""Words allowed between "the answer is" and its value."""
_CHANGED_AFTER = re.compile(
    rf"(?i)\s*(?:,?\s*(?:or|to|nor|and)\s+[-\d$\\]|\({_OR_MAYBE}|[+*/^×·÷]|\s-\s*\d)"
    r"|\s+(?:or|and)\s+(?:more|less|fewer|so on)\b"
    r"|[\w\s]{0,30}?\s(?:if|when|unless|provided|only (?:for|in|at)|excluded"
    r"|is (?:wrong|not|incorrect|false|too|impossible|invalid|extraneous))\b",
)
_CHANGED_BEFORE = re.compile(
    r"(?i)\b(?:whether|(?:first,?(?: \w+)?|initially"
    r"|originally|wrongly|mistakenly) (?:thought|guessed|assumed|believed|said|got)"
    r"|mistake (?:is|was)|(?<!add )(?<!adds )(?<!added )(?<!adding )(?<!sum )(?<!sums )(?<!sum it )\bup to)\b[^.,;:]*$"
    r"|(?:\b(?:(?:step|page|problem|question|exercise|theorem|lemma|equation|figure|chapter|section|case|line)s?"
    r"|(?:let|suppose|assume)(?: that)?(?: we have)?[\s$]*(?:[A-Za-z]\s*=)?)|[\w)}|]\s?(?:[<>]=?|[≤≥≠]|!=))[\s*_#($]*$"
    r"|[*/^][ $*_(\"'`]*$"
)
"""Words that suppose or doubt the value after them, or turn it into something else: page 5, x > 5."""
_CONDITION_BEFORE = re.compile(r"(?i)\b(?:if|unless|suppose|assuming)\b[^,;:.]*$")
_UNFINISHED = re.compile(
    r"(?i)\b(?:we(?= (?:need|must|have to|will|can|now)\b|$)|need to|next|now|let(?:.s| us| me)|assume)\b[^\d.!?。\n]*$"
    r"|\b(?:where|that|which|and|or|the|an|we|if|because|since|when)\s*$"
)
"""The end of a text that breaks off mid-calculation."""
_OTHER_LANGUAGES = {
    "answer": "antwort richtig respuesta solución réponse resposta risposta ответ 答案 答え 答 正解 选项 정답 답",
    "is": "ist es est é è lautet beträgt vaut vale 是 为 は 은 는", "and": "und и 和 与",
    "least": "至少 最少", "most": "至多 最多", "less": "少于 小于 不到 不足", "more": "多于 大于 超过",
    "or": "oder ou или 或 または 또는",
    "not": "nicht kein keine pas não non не 不 ではない", "but": "sondern sino 而 а", "maybe": "可能", "pick": "選 选",
    ".": "です 입니다 。",
}  # fmt: skip
_ENGLISH = {word: english for english, words in _OTHER_LANGUAGES.items() for word in words.split()}
_FOREIGN = re.compile(
    "|".join(rf"\b{word}\b(?!-)" if word < "\u3000" else word for word in sorted(_ENGLISH, key=len, reverse=True)),
    re.IGNORECASE,
)
_UPRIGHT_NUMBER = re.compile(r"\\(?:text\w*|math\w+)\s*\{\s*(-?[\d.,]+)\s*\}")
_LONG_WORD = re.compile(
    r"(?<![\\A-Za-z{])(?!(?:sqrt|sin|cos|tan|log|exp|arc(?:sin|cos|tan))\b)[A-Za-z]{3,}|[㐀-鿿]{2,}"
)
_TEXT_ARGUMENT = re.compile(r"\\(?:text\w*|math\w+|mbox|operatorname)\s*\{[^{}]*\}")
_MAX_CHARS = 1_000


def statements(text: str, place: str) -> Iterator[tuple[str, str]]:
    """Candidate answers with the text dropped for each: the first value of a statement, the last of prose."""
    sentences = [one.strip() for one in _SENTENCE_END.split(text) if one and one.strip()]
    if place == "prose":
        if _UNFINISHED.search(text[-100:]):
            return
        sentences.reverse()
    for sentence in sentences[:1] if place == "said" else sentences:
        sentence = _UPRIGHT_NUMBER.sub(r"\1", sentence)
        bare = sentence.rstrip(" *_`.").lstrip(" *_`")
        if len(bare) > _MAX_CHARS:
            continue
        if not _LONG_WORD.search(_TEXT_ARGUMENT.sub("", _FORMULA.sub(" ", bare))) and not bare.count("$") > 2:
            yield bare, "" if len(sentences) == 1 else "sentences around the answer"
            return
        found = list(_values(_without_an_aside(bare) if place == "prose" else bare))
        if found:
            value = found[0] if place == "said" and not (" but " in bare and not found[0]) else found[-1]
            before = bare.partition(value.split()[0])[0] if value.strip() else ""
            if value and (place != "said" or _ALLOWED.issuperset(_words(before))):
                yield value, "words around the answer"
            return
        if place == "said":
            yield bare, ""


def in_english(text: str) -> str:
    """The text with the few words of other languages that state, deny or join answers in English."""
    found = _FOREIGN.sub(lambda found: f" {_ENGLISH[found[0].lower()]} ", text)
    found = re.sub(r"(?<=[\u3040-\u9fff])(?=[-\d$])", " ", found)
    return text if found == text else re.sub(r"[^\S\n]+(?=[\s.,:])|(?<=\bis) +is\b", "", found).strip()


def in_plain_prose(response: str) -> str:
    """The end of a response without the numbers of its steps, if lines begin with 1., 2. and so on, or a farewell."""
    numbers = [int(found[1]) for found in _STEP.finditer(response)]
    if len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        response = _STEP.sub("", response)
    while (found := _FAREWELL.search(response)) is not None:
        response = response[: found.start()].rstrip()
    response = _CHANCE.sub(r"\1\2/\3", response.rstrip())
    if bullets := _BULLETS.search(response):
        listed = re.sub(r"\s*\n[ \t]*[-*•][ \t]+", ", ", "\n" + bullets[1].strip("\n")).strip(", ")
        return f"{response[: bullets.start()]}: {listed}"
    return response


def _without_an_aside(sentence: str) -> str:
    """The sentence without what is denied, or given as a reason, behind its value: "18, not 20" is "18"."""
    if (found := _BREAKDOWN.search(sentence)) and not re.search(
        r"(?i)\b(?:total|together|so)\b", sentence[found.end("value") :]
    ):
        return sentence[: found.end("value")]
    found = _ASIDE.search(sentence)
    if found is None or not re.search(r"\d", sentence[: found.start()]) or _CONCLUDES.search(found[0]):
        return sentence
    return sentence[: found.start()].rstrip(" ,")


def words_said(text: str) -> Iterator[str]:
    """A few words that answer the question: "Yes, it is." is "Yes", "The day is Friday." is "Friday", and a few words
    are the answer."""
    if answers := {found[1].capitalize() for found in _YES_OR_NO.finditer(text)}:
        yield from answers if len(answers) == 1 else ()
        return
    if found := _NONE.search(text):
        yield "no solution"
        return
    sentences = [one.strip(" *_`") for one in _SENTENCE_END.split(text) if one and one.strip()]
    sentences = [re.sub(r",?\s(?:and )?not\s[^,;]*$", "", one.rstrip(".!")) for one in sentences]
    alone = sentences[0].rstrip(".!") if len(sentences) == 1 else ""
    if alone and (len(alone.split()) <= 3 or number_of_words(alone) is not None):
        yield alone
    elif sentences and (found := _IS_CALLED.search(sentences[-1])) is not None:
        before = sentences[-1][: found.start("words")]
        if not changes_what_follows(before) and not _CONDITION.search(before):
            yield found["words"]
    if not re.search(r"\d", text):
        runs = [found for found in _IN_WORDS.finditer(text) if found[0].lower() != "one"]
        if len(runs) == 1 and not changes_what_follows(text[: runs[0].start()]) and not _CONDITION.search(text):
            yield runs[0][0]


def _words(text: str) -> list[str]:
    """Lower-case words of a text; only those after "but" in "not 4 but"."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(text)]
    denied = words[: words.index("but")] if "but" in words else []
    if any(word == "not" or word.endswith("n't") for word in denied):
        return words[words.index("but") + 1 :]
    return words


def changes_what_follows(text: str) -> bool:
    """True if the words at the end deny or change a value that follows: "it is not", "at least"."""
    return bool(_CHANGING.intersection(_words(text[-80:])[-4:]) or _CHANGED_BEFORE.search(text[-80:]))


def _values(sentence: str) -> Iterator[str]:
    """Each value of a sentence; "" for a value that its neighbours change."""
    formulas: list[tuple[int, int, str]] = []
    for found in _FORMULA.finditer(sentence):
        start, content = found.start(), next(one for one in found.groups() if one)
        if formulas and re.fullmatch(r"\s*(?:,|and|or|,\s*(?:and|or))\s*", sentence[formulas[-1][1] : start]):
            start, _, before = formulas.pop()
            content = f"{before}, {content}"
        formulas.append((start, found.end(), content))
    for start, end, content in formulas:
        rest = sentence[end:]
        words = _CLAUSE_END.split(rest, maxsplit=1)[0]
        is_changed = changes_what_follows(sentence[:start]) or _CHANGED_AFTER.match(rest)
        left, _, result = content.rpartition("=")
        content = result if words.strip() and not re.search(r"(?<![\\A-Za-z])[A-Za-z]", left) and left else content
        yield "" if is_changed else f"{content}{words}".rstrip(" .*_")
    if formulas:
        return
    place = 0
    while found := _AMOUNTS.search(sentence, place) or _NUMBER.search(sentence, place):
        rest = found["rest"].lstrip("*_`")
        words = _CLAUSE_END.split(rest, maxsplit=1)[0]
        place = found.end("value")
        if re.search(r"(?: out of|\d in) *$", sentence[: found.start()]):  # of as many
            continue
        before = sentence[: found.start()]
        is_changed = changes_what_follows(before) or _CHANGED_AFTER.match(rest)
        is_changed = is_changed or (rest[len(words) :].startswith(",") and _CONDITION_BEFORE.search(before[-80:]))
        yield "" if is_changed else f"{found['value']}{words}".rstrip(" .*_")
