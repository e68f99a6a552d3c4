"""Rollouts kept for people to read, with the weights behind each token and the verifier's outcome.

    {"task": "k_smallest", "prompt_id": "3:k9a2", "verdict": "right", "dropped": "", "reward": 1.0, "tokens": 9,
     "truncated": false, "prompt": [{"text": "3:k9a2<think>", "tokens": 6}],
     "thinking": [{"text": "9a", "tokens": 2, "version": 38}, {"text": "k2", "tokens": 2, "version": 39},
                  {"text": "</think>", "tokens": 1, "version": 39, "forced": true}],
     "answer": [{"text": "29a", "tokens": 4, "version": 39}], "right_answer": "29a"}

An episode has its turns in place of thinking and answer, and why it ended:

     "prompt": [{"text": "1-16", "tokens": 4}],
     "turns": [{"turn": 1, "thinking": [], "answer": [{"text": "8", "tokens": 2, "version": 38}], "reward": 0.0},
               {"turn": 2, "environment": [{"text": "+", "tokens": 1}], "thinking": [],
                "answer": [{"text": "9", "tokens": 2, "version": 38}], "reward": 1.0}],
     "end": "won", "why": "=", "others": []

Consecutive tokens of the same weights form one span, a compact record of the weights of every token. A part that is too
long keeps both ends, and a span between them gives the number of omitted tokens: `{"left_out": 11820}`. The choice of
rollouts depends only on their positions and uses no random numbers.
"""

import codecs
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from scalerl.generator.request import Finished
from scalerl.objective.rewards import reward
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Judgement, Rollout
from scalerl.tasks import Task
from scalerl.tokens.reader import Reader

NUM_KEPT = 4
"""Maximum number of rollouts of one kind kept at an evaluation."""
END_BYTES = 2000
"""UTF-8 bytes kept at either end of a prompt, a thinking part and an answer."""
TURN_END_BYTES = 500
"""UTF-8 bytes kept at either end of what was thought, answered and said in a turn of an episode."""
TURNS_AT_END = 6
"""Turns kept at either end of a conversation."""
OTHERS_KEPT = 3
"""Conversations kept of an agent that rewrites its history, beside the first."""

Span = dict[str, Any]
"""One entry of `prompt`, `thinking` or `answer`."""


def evenly_placed(number: int, most: int, first: int = 0) -> list[int]:
    """At most `most` of `number` indices, evenly spaced from `first` on: evenly_placed(8, 4, 1) is [1, 3, 5, 7]."""
    kept = min(number, most)
    return sorted((first + place * number // kept) % number for place in range(kept))


def kept_ends(sizes: Sequence[int], most: int) -> tuple[int, int]:
    """End of the kept beginning and start of the kept end, each of at most `most` bytes; equal if everything fits.

    `sizes` are the bytes of each token: kept_ends([5, 5, 5, 5], 7) is (1, 3).
    """
    if sum(sizes) <= 2 * most:
        return len(sizes), len(sizes)
    head = sum(total <= most for total in accumulate(sizes))
    tail = sum(total <= most for total in accumulate(reversed(sizes)))
    return head, len(sizes) - tail


def spans(
    reader: Reader,
    tokens: Sequence[int],
    versions: Sequence[int] | None = None,
    forced: Sequence[bool] | None = None,
    most: int = END_BYTES,
) -> list[Span]:
    """Text of tokens, in spans of the same weights; a prompt has no weights, and shows ends of turns.

    A character whose bytes come from several tokens belongs to the span of the last one.
    """
    # A token counts as at least one byte, so that tokens without text are bounded too.
    head, tail = kept_ends([max(1, len(reader.pieces[token])) for token in tokens], most)
    found = _spans(reader, tokens, versions, forced, range(head))
    if head < tail:
        found.append({"left_out": tail - head})
    return found + _spans(reader, tokens, versions, forced, range(tail, len(tokens)))


def _spans(
    reader: Reader,
    tokens: Sequence[int],
    versions: Sequence[int] | None,
    forced: Sequence[bool] | None,
    places: range,
) -> list[Span]:
    found: list[Span] = []
    decoder, before = codecs.getincrementaldecoder("utf-8")(errors="replace"), None
    for place in places:
        who: Span = {} if versions is None else {"version": versions[place]}
        if forced is not None and forced[place]:
            who["forced"] = True
        if who != before:
            found.append({"text": "", "tokens": 0, **who})
            before = who
        mark = reader.marks.get(tokens[place], b"") if versions is None else b""
        found[-1]["text"] += decoder.decode(mark or reader.pieces[tokens[place]])
        found[-1]["tokens"] += 1
    if found:
        found[-1]["text"] += decoder.decode(b"", final=True)
    return found


def rollout_text(reader: Reader, rollout: Rollout) -> dict[str, Any]:
    """Spans of the prompt, and those of what was written; of an episode its turns and its end."""
    prompt = {"prompt": spans(reader, rollout.prompt.tokens)}
    if rollout.episode is None:
        return {**prompt, **written_text(reader, rollout, 0, len(rollout.tokens), END_BYTES)}
    end, why = rollout.episode.end, kept_beginning(rollout.episode.why)
    turns, *others = (turns_text(reader, one) for one in rollout.samples[: 1 + OTHERS_KEPT])
    if (left_out := len(rollout.others) - len(others)) > 0:
        others.append([{"left_out": left_out}])
    return {**prompt, "turns": turns, "end": end, "why": why, "others": others}


def written_text(reader: Reader, rollout: Rollout, start: int, stop: int, most: int) -> dict[str, list[Span]]:
    """Spans of the thinking in these tokens with the token that ends it, and of the answer."""
    tokens, versions, forced = (one[start:stop].tolist() for one in (rollout.tokens, rollout.versions, rollout.forced))
    stated = reader.answer(tokens)
    cut = len(tokens) - (len(stated.tokens) if stated else 0)
    return {
        "thinking": spans(reader, tokens[:cut], versions[:cut], forced[:cut], most),
        "answer": spans(reader, tokens[cut:], versions[cut:], forced[cut:], most),
    }


def turns_text(reader: Reader, rollout: Rollout) -> list[dict[str, Any]]:
    """What the environment said before each turn, what was written in it, and its reward."""
    found: list[dict[str, Any]] = []
    turns = rollout.episode.turns if rollout.episode else ()
    heard_from = 0
    for number, turn in enumerate(turns, start=1):
        heard, heard_from = rollout.tokens[heard_from : turn.start].tolist(), turn.stop
        if TURNS_AT_END < number <= len(turns) - TURNS_AT_END:
            continue
        said = {"environment": spans(reader, heard, most=TURN_END_BYTES)} if heard else {}
        text = written_text(reader, rollout, turn.start, turn.stop, TURN_END_BYTES)
        found.append({"turn": number, **said, **text, "reward": turn.reward})
    if (left_out := len(turns) - len(found)) > 0:
        found.insert(TURNS_AT_END, {"left_out": left_out})
    return found


def kept_beginning(text: str) -> str:
    """The text, or its first END_BYTES bytes and an ellipsis if it is longer than the two ends kept."""
    content = text.encode()
    return text if len(content) <= 2 * END_BYTES else f"{content[:END_BYTES].decode(errors='ignore')} …"


def kept_rollout(reader: Reader, rollout: Rollout, judged: Judgement, its_reward: float, task: Task) -> dict[str, Any]:
    """Columns of every kept rollout."""
    right = task.written(rollout.prompt).answer
    return {
        "task": rollout.prompt.task,
        "prompt_id": rollout.prompt.id,
        "verdict": judged.outcome,
        "dropped": judged.dropped,
        "reward": its_reward,
        "tokens": rollout.num_written,
        "truncated": rollout.truncated,
        **rollout_text(reader, rollout),
        "right_answer": None if right is None else kept_beginning(right),
    }


def kept_of_evaluation(
    reader: Reader, recipe: ResolvedRecipe, task: Task, finished: Sequence[Finished], judged: Sequence[Judgement]
) -> list[dict[str, Any]]:
    """Kept rollouts of an evaluation with these judgements: the first answer to some prompts, always the same ones."""
    firsts = [pair for pair in zip(finished, judged, strict=True) if pair[0].request.index == 0]
    firsts.sort(key=lambda pair: pair[0].request.group)
    return [
        kept_rollout(
            reader, one.rollout, its, reward(its, one.rollout.num_written, recipe, one.rollout.prompt.task), task
        )
        for one, its in (firsts[place] for place in evenly_placed(len(firsts), NUM_KEPT))
    ]
