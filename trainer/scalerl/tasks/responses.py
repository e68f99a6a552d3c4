"""Written responses: a thought, the end of thinking, an answer, the end of sequence."""

from collections.abc import Sequence

from scalerl.tokens import Tokenizer
from scalerl.tokens.reader import StatedAnswer


def demonstrated(tokenizer: Tokenizer, thought: str, answer: str) -> tuple[int, ...]:
    """Token ids of a written response; only the answer if the model does not think."""
    draft = (*tokenizer.encode(thought), *tokenizer.end_think) if tokenizer.reader.thinks else ()
    return (*draft, *tokenizer.encode(answer), tokenizer.eos_ids[0])


def demonstrated_solution(tokenizer: Tokenizer, solution: str, answer: str) -> tuple[int, ...]:
    """Token ids with a written solution as the thought, or as the first part of the answer without thinking."""
    if solution and not tokenizer.reader.thinks:
        answer = f"{solution}\n\n{answer}"
    return demonstrated(tokenizer, solution, answer)


def ended_answer(tokenizer: Tokenizer, response: Sequence[int]) -> StatedAnswer | None:
    """Stripped answer of a response that ends with an end of sequence; None for other responses."""
    answer = tokenizer.reader.answer(response)
    if answer is None or not answer.tokens or answer.tokens[-1] not in tokenizer.eos_ids:
        return None
    return StatedAnswer(text=answer.text.strip(), tokens=answer.tokens[:-1])
