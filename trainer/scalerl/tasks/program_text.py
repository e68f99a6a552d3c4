"""The program in an answer: the fenced block, tag or bare text that contains it.

    the last block that is Python    named python, py, python3, {python}, "Python 3.11" ...; or unnamed, if it is Python
                                     that does more than assign values
    not a program                    blocks of other names (bash, json, output), sessions with >>>, parts of a function,
                                     and blocks that only use or test what an earlier one defines
    blocks that need each other      a block that defines a function and uses names of an earlier block includes it
    no such block                    text between <answer>, [PYTHON] or [BEGIN] tags, else the whole without sentences
                                     before and after the code; a lone closing fence ends bare code

Fences follow Markdown: three or more backticks or tildes, closed by as many, with any indentation. A block that is
never closed extends to the end of the answer.
"""

import ast
import builtins
import keyword
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from scalerl.verifiers.mathematics.answer import without_thought

MOST_BLOCKS = 50
"""Maximum number of blocks, from the end of an answer, that are searched for a program."""
MOST_CLOSINGS, MOST_TRIES = 20, 500
"""Maximum number of closing fences tried for one block, and for a whole answer."""
_FENCE = re.compile(r"^(?P<before>[^\n`~]*?)(?P<marks>`{3,}|~{3,})[ \t]*(?P<name>[^\n`]*)$")
_TAGGED = re.compile(
    r"^[^\n<\[`'\"]*(?:<pre>\s*)?(?:<(answer|python|code|solution)>|\[(python|answer|begin)\])(.*?)"
    r"(?:</\1>|\[/\2\]|\[done\]|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_PYTHON_NAME = re.compile(r"i?py(thon)?[\d.]*|[\w-]+\.py", re.IGNORECASE)
_NO_LANGUAGE = ("", "code", "program", "solution", "text", "txt", "plain", "plaintext")
_WORDS = re.compile(r"[\s{}:,=]+")
_MARKUP = re.compile(r"^\s*(?:#{1,6} |\*\*|[-*] |\d+\. |> )")
_SENTENCE = re.compile(r"^[A-Za-z][\w'’-]*(?:[,;]? [\w'’`().,;/-]++(?: [\w'’`().,;/-]++)*+)?\s*[.:!?,]*$")
_ONE_LINE = re.compile(r"^[ \t]*(`{3,})(?:python3?[ \t]+|py[ \t]+)?([^`\n]+)\1[ \t]*$", re.MULTILINE)
_LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.unaryop, ast.expr_context)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_OF_PYTHON = frozenset(dir(builtins)) | {"__file__", "exit", "quit"}


@dataclass(frozen=True, kw_only=True)
class WrittenProgram:
    """A program, and what was dropped from the answer to read it: `WrittenProgram(text="def f(): ...")`."""

    text: str
    dropped: str = ""


def program_in(answer: str, *, reads_input: bool = False) -> WrittenProgram:
    """The program in an answer; its text is empty if there is none.

    With `reads_input` the program runs as a script, so a block that calls the functions before it belongs to it.
    """
    answer = plain_answer(answer)
    tagged = [match[3] for match in _TAGGED.finditer(answer)]
    for text in [*tagged[-1:], answer]:
        if found := _of_blocks([block for block in _blocks(text)[-MOST_BLOCKS:] if block.is_python], reads_input):
            return found
        bare = _without_sentences(text if text is not answer else _TAGGED.sub("", text))
        if _does_something(bare):
            return WrittenProgram(text=bare, dropped="" if bare == text.strip() else "text around the program")
    return WrittenProgram(text="" if _blocks(answer) else answer.strip())


def plain_answer(answer: str) -> str:
    """The answer without its thinking, with line ends as Python writes them."""
    return without_thought(answer.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


def python_blocks(answer: str) -> list[str]:
    """Texts of the fenced blocks labelled as Python or not labelled, in order."""
    return [block.text for block in _blocks(answer)[-MOST_BLOCKS:] if block.name.lower()[:2] in ("", "py")]


@dataclass(frozen=True)
class _Block:
    name: str
    text: str

    @property
    def is_python(self) -> bool:
        """True if a person would read the block as Python to be run."""
        words = [word.strip(".") for word in _WORDS.split(self.name.lower()) if word.strip(".")]
        if words and _PYTHON_NAME.fullmatch(words[0]):
            return bool(self.text.strip()) and not self.text.lstrip().startswith(">>>") and not self._is_a_part
        return (words[0] if words else "") in _NO_LANGUAGE and not self._is_a_part and _does_something(self.text)

    @property
    def _is_a_part(self) -> bool:
        """True if the text is Python only inside a function or a loop."""
        tree = python_tree(self.text)
        return tree is not None and any(map(_leaves, _outside_functions(tree)))


def _of_blocks(blocks: Sequence[_Block], reads_input: bool) -> WrittenProgram | None:
    """The last block that does more than use the blocks before it, with the blocks that it needs."""
    trees = [python_tree(block.text) for block in blocks]
    uses: list[str] = []
    for last in reversed(range(len(blocks))):
        tree, text = trees[last], blocks[last].text
        earlier = [other for other in trees[:last] if other is not None]
        known = {name for other in earlier for name in _bound(other)}
        if tree is not None and (needed := _free(tree) & known):
            if _only_uses(tree, needed):
                uses.insert(0, text)
                continue
            needed_blocks = [block.text for block, other in zip(blocks[:last], trees, strict=False) if other]
            return WrittenProgram(text="\n\n".join([*needed_blocks, text]), dropped="")
        if reads_input and uses and tree is not None and not _acts(tree):
            return WrittenProgram(text="\n\n".join([text, *uses]))
        return WrittenProgram(text=text, dropped="a block of Python after the program" if uses else "")
    return None


def _blocks(text: str) -> list[_Block]:
    """Fenced blocks, in order."""
    lines = text.split("\n")
    first = next((number for number, line in enumerate(lines) if _FENCE.match(line)), None)
    blocks = list(_blocks_of(lines))
    if first is not None and first > 0 and not lines[first].strip("`~ \t"):
        before = _without_sentences("\n".join(lines[:first]))
        # A lone closing fence: the program is before it, not after it.
        if _does_something(before) and not (blocks and blocks[0].is_python):
            return [_Block("python", before), *_blocks_of(lines[first + 1 :])]
    if not any(block.text for block in blocks):
        return [_Block("", match[2].strip()) for match in _ONE_LINE.finditer(text)]
    return blocks


def _blocks_of(lines: Sequence[str]) -> Iterator[_Block]:
    number, tries = 0, MOST_TRIES
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first: tuple[int, str] | None = None
        # A docstring may contain fences: extend the block until it is Python, if it ever is.
        for end, rest in islice(_closings(lines, number, opening["marks"]), MOST_CLOSINGS):
            text = _dedented([*lines[number:end], *rest], opening["before"])
            first = first or (end, text)
            tries -= 1
            if tries < 0 or python_tree(text) is not None:
                first = (end, text) if tries >= 0 else first
                break
        assert first is not None  # the end of the text closes every block
        yield _Block(opening["name"].strip(), first[1].strip("\n"))
        number = first[0] + 1


def _closings(lines: Sequence[str], first: int, marks: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that may close a block, each with its part that belongs to the block; finally the end of the text."""
    for number in range(first, len(lines)):
        line = lines[number].rstrip()
        rest = line.rstrip(marks[0])
        if len(line) - len(rest) >= len(marks):
            yield number, [rest] if rest.strip() else []
    yield len(lines), []


def _dedented(lines: Sequence[str], before: str) -> str:
    """Lines without the indentation of their fence, or without quotation marks."""
    quoted = before.strip() == ">"
    return textwrap.dedent("\n".join(re.sub(r"^\s*> ?", "", line) if quoted else line for line in lines))


def _without_sentences(text: str) -> str:
    """Bare code without lines of prose before and after it; the text unchanged if that is not code either."""
    lines = text.strip().split("\n")
    if python_tree(text.strip()) is None:
        start = next((i for i, line in enumerate(lines) if line.strip() and not _is_prose(line)), len(lines))
        end = next((i for i in range(len(lines), start, -1) if lines[i - 1].strip() and not _is_prose(lines[i - 1])), 0)
        shorter = textwrap.dedent("\n".join(lines[start:end])).strip()
        if python_tree(shorter) is not None:
            return shorter
    return text.strip()


def _is_prose(line: str) -> bool:
    """True if a line is a sentence or markup, not Python with an error."""
    if _MARKUP.match(line):
        return True
    words = line.split()
    if line[:1].isspace() or not words or keyword.iskeyword(words[0]) or not _SENTENCE.match(line.strip()):
        return False
    return words[0][:1].isupper() or (len(words) > 2 and python_tree(line) is None)


def python_tree(text: str) -> ast.Module | None:
    """The text parsed as Python; None if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _does_something(text: str) -> bool:
    """True if a text is Python that does more than name values, unlike outputs such as "12" and "YES"."""
    tree = python_tree(text)
    return tree is not None and any(map(_is_an_act, tree.body))


def _is_an_act(node: ast.stmt) -> bool:
    match node:
        case ast.AnnAssign(value=None) | ast.Pass():
            return False
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return not all(isinstance(inner, _LITERAL) for inner in ast.walk(value))
        case ast.Expr(value=value):
            return any(isinstance(inner, ast.Call | ast.Await | ast.NamedExpr) for inner in ast.walk(value))
    return True


def _acts(tree: ast.Module) -> bool:
    """True if running it does more than define and assign."""
    passive = (*_DEFINITIONS, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    return any(_is_an_act(node) and not isinstance(node, passive) for node in tree.body)


def _outside_functions(tree: ast.AST, in_loop: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes outside of functions, each with True if it is in a loop."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child, in_loop
            yield from _outside_functions(child, in_loop or isinstance(child, ast.For | ast.While | ast.AsyncFor))


def _leaves(place: tuple[ast.AST, bool]) -> bool:
    node, in_loop = place
    if isinstance(node, ast.Break | ast.Continue):
        return not in_loop
    return isinstance(node, ast.Return | ast.Yield | ast.YieldFrom)


def loaded_names(tree: ast.AST) -> list[str]:
    """Names that are read, once for each time."""
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that these nodes themselves define, assign or import; nested nodes are not searched."""
    names = set[str]()
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
    return names


def _borrowed(tree: ast.Module) -> list[ast.alias]:
    """What is imported from modules outside the standard library, such as the answer's own program file."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    others = [node for node in nodes if (node.module or "").partition(".")[0] not in sys.stdlib_module_names]
    return [alias for node in others for alias in node.names]


def _bound(tree: ast.Module) -> set[str]:
    """Names that the block itself binds."""
    borrowed = _borrowed(tree)
    return bound_names(node for node in ast.walk(tree) if node not in borrowed)


def _free(tree: ast.Module) -> set[str]:
    """Names that the block uses but does not bind."""
    return {*loaded_names(tree), *(alias.name for alias in _borrowed(tree))} - _bound(tree) - _OF_PYTHON


def _only_uses(tree: ast.Module, needed: set[str]) -> bool:
    """True if the block defines only tests, or imports what earlier blocks define."""
    defined = [node.name for node in tree.body if isinstance(node, _DEFINITIONS)]
    imports = any(alias.name in needed for alias in _borrowed(tree))
    return imports or all(name.lower().startswith("test") for name in defined)
