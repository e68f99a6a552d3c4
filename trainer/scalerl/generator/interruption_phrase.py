"""The phrase that an interruption forces (ScaleRL A.10), and the maximum length of a rollout with it."""

from scalerl.recipe import Generation, ResolvedRecipe
from scalerl.tokens import Tokenizer
from scalerl.tokens.reader import END_THINK
from scalerl.tokens.symbols import SymbolTokenizer

PHRASE = f"Okay, time is up. Let me stop thinking and formulate a final answer now. {END_THINK}"


def default_phrase(tokenizer: Tokenizer) -> str:
    """Text that is forced unless the recipe has its own; with a symbol tokenizer, which has no words, only the end of
    thinking."""
    return END_THINK if isinstance(tokenizer, SymbolTokenizer) else PHRASE


def ending_phrase(tokenizer: Tokenizer, phrase: tuple[int, ...] | None) -> tuple[int, ...]:
    """The phrase, by default that of the tokenizer; raises ValueError unless its last token ends thinking.

    Empty for a model that does not think.
    """
    reader = tokenizer.reader
    if not reader.thinks:
        return ()
    phrase = phrase or tokenizer.encode(default_phrase(tokenizer))
    answer = reader.answer(phrase)
    if answer is None or answer.tokens or answer.text:
        raise ValueError(
            f"the tokenizer writes the interruption as {reader.text(phrase)!r}, but it must end with '</think>'"
        )
    return phrase


def rollout_phrase(recipe: ResolvedRecipe, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The phrase forced by interruptions of this recipe; raises ValueError as `ending_phrase` does."""
    own = recipe.length_control.phrase if recipe.length_control.type == "interruption" else None
    return ending_phrase(tokenizer, None if own is None else tokenizer.encode(own))


def tokens_with_phrase(settings: Generation, phrase: tuple[int, ...]) -> int:
    """Maximum number of tokens in one rollout, since a phrase does not count towards the budget."""
    return settings.max_tokens + max(0, len(phrase) - 1)
