"""vLLM as a generator: rollouts completed in parts, with interruptions between parts.

A rollout that is still thinking at its cut is stopped and gets the phrase; the engine then continues from prompt,
thought and phrase. The engine finds their cached keys and values again, because a rollout keeps its salt, and so does
an episode, whose later turns are charged for what is new in them. Rollouts of a group that start under the same weights
share the prompt's keys and values. Rollouts that start under different weights never do, so no rollout reads values
from weights that it does not name.

Differences from the built-in generator: the phrase is prefilled in one step instead of one step per token. Tokens that
did not fill a cache block are recomputed at an interruption, with the current weights. A state holds tokens but no keys
and values, so a resumed run recomputes those of unfinished rollouts with the weights it resumes with.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalerl.generator.generator import Generator
from scalerl.generator.random_numbers import split_mix_64
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.generator.vllm_engine import Ask, VllmEngine
from scalerl.recipe import Generation
from scalerl.rollout import Rollout
from scalerl.tokens import Tokenizer
from scalerl.tokens.reader import ENDED
from scalerl.weights.hugging_face import Weights


@dataclass(kw_only=True)
class Unfinished:
    """A rollout in progress, token by token."""

    request: Request
    salt: str
    thinking: bool
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    forced: list[bool] = field(default_factory=list)
    written: int = 0
    """Bytes of the end-of-thinking marker seen so far, see `Reader.table`."""
    answer: int = 0
    """Number of answer tokens."""

    def to_state(self) -> dict[str, Any]:
        """Fields as a dict; lists are copied."""
        return {name: list(value) if isinstance(value, list) else value for name, value in vars(self).items()}


class VllmGenerator(Generator):
    """Decodes up to `slots` rollouts at once; interruptions force `phrase`, which ends thinking."""

    def __init__(
        self,
        engine: VllmEngine,
        settings: Generation,
        tokenizer: Tokenizer,
        *,
        slots: int,
        max_tokens: int,
        phrase: tuple[int, ...],
        recompute: bool = False,
        served: Callable[[Weights], Weights] = lambda weights: weights,
    ) -> None:
        """`served` converts the generator's weights to those that the engine loads."""
        super().__init__(slots)
        self.engine, self.settings, self.recompute = engine, settings, recompute
        self.phrase, self.max_tokens, self._served = phrase, max_tokens, served
        self._reader, self._eos = tokenizer.reader, frozenset(tokenizer.eos_ids)
        self.version = 0
        self._rows: dict[str, Unfinished] = {}
        self._asked = 0
        self._weights: dict[str, Any] | None = None
        """Weights last set; None for the weights it was built with."""
        self._preempted_before, self._warns_at = engine.preemptions.count, 1
        self._to_read: list[tuple[int, int]] = []
        """Token ranges (start, stop) that the next step reads without choosing them."""

    @property
    def active(self) -> int:
        return len(self._rows)

    def set_weights(self, weights: Weights, version: int) -> None:
        self._weights = {name: tensor.detach().clone() for name, tensor in weights.items()}
        unread = [] if self.recompute else self._take_back()
        self.engine.set_weights(self._served(self._weights), version, recompute=self.recompute)
        self.version = version
        if self.recompute:
            self.unended = dict.fromkeys(self.unended)
            self._to_read += [(0, len(row.request.prompt.tokens) + len(row.tokens)) for row in self._rows.values()]
        self._begin(unread)

    def _take_back(self) -> list[Request]:
        """Take back asks with no token yet.

        The old weights may have read some or all of their prompts, and no token would record that."""
        unread = {name: row.request for name, row in self._rows.items() if not row.tokens}
        for name in unread:
            del self._rows[name]
            self.engine.drop(name)
        return list(unread.values())

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        return self.engine.score(tokens)

    def step(self) -> tuple[list[Finished], StepWork]:
        """Start waiting requests, then take what the engine has chosen; returns the finished rollouts."""
        self._fill()
        read, self._to_read = self._to_read, []
        sequences = context = 0
        finished: list[Finished] = []
        for piece in self.engine.step() if self._rows else ():
            row = self._rows.get(piece.name)
            if row is None:  # from a dropped ask
                continue
            prompt = len(row.request.prompt.tokens)
            for token, logprob in zip(piece.tokens, piece.logprobs, strict=True):
                sequences += 1
                context += prompt + len(row.tokens)
                self._note(row, token, logprob, piece.version, forced=False)
                if self._is_over(row) or self._is_due(row):
                    break
            interrupted = self._is_due(row) and not self._is_over(row)
            if interrupted:
                self._interrupt(row)
            if interrupted or piece.is_last or self._is_over(row):
                del self._rows[piece.name]
                if not piece.is_last:
                    self.engine.drop(piece.name)
                if self._is_over(row):
                    finished.append(self._finish(row))
                else:
                    self._ask(row)
        self._warn_of_preemptions()
        return finished, StepWork(
            sequences=sequences,
            prefill_tokens=sum(end - start for start, end in read),
            prefill_context_tokens=sum((end - start) * (start + end + 1) // 2 for start, end in read),
            context_tokens=context,
        )

    def pause(self) -> None:
        self.engine.pause()

    def resume(self) -> None:
        self.engine.resume()

    def check(self) -> None:
        self.engine.check()

    def close(self) -> None:
        self.engine.close()

    def _fill(self) -> None:
        room = min(self.slots - self.active, len(self.waiting))
        self._begin([self.waiting.popleft() for _ in range(room)])

    def _begin(self, requests: list[Request]) -> None:
        begun: set[tuple[str, str]] = set()
        for request in requests:
            prompt, salt, read = request.prompt.tokens, f"{request.group}.{self.version}", 0
            if cached := self.unended.get(request.place):
                self.unended[request.place] = None  # until the turn is over: it may be taken back
                if prompt[: len(cached[1])] == cached[1]:  # else an earlier turn was rewritten
                    salt, read = cached[0], len(cached[1])
            row = Unfinished(request=request, salt=salt, thinking=self._reader.thinks)
            if (named := (salt, request.prompt.id)) not in begun:  # the rest of its group finds the prompt in the cache
                begun.add(named)
                self._to_read.append((read, len(prompt)))
            self._ask(row)

    def _ask(self, row: Unfinished) -> None:
        """Ask the engine to continue a rollout. The engine gets only the next limit, so a rollout that ends thinking by
        itself continues undisturbed."""
        own, request = len(row.tokens), row.request
        name = f"{request.group}.{request.index}.{self._asked}"
        self._asked += 1
        self._rows[name] = row
        self.engine.ask(
            Ask(
                name=name,
                tokens=(*request.prompt.tokens, *row.tokens),
                most=min(self.max_tokens, request.most) - own,
                salt=row.salt,
                seed=seed_of(request, own),
            )
        )

    def _note(self, row: Unfinished, token: int, logprob: float, version: int, *, forced: bool) -> None:
        row.answer += not row.thinking
        row.tokens.append(token)
        row.logprobs.append(logprob)
        row.versions.append(version)
        row.forced.append(forced)
        if row.thinking:
            row.written = int(self._reader.table[token, row.written])
            row.thinking = row.written != ENDED

    def _is_over(self, row: Unfinished) -> bool:
        most = min(self.max_tokens, row.request.most)
        is_full = len(row.tokens) >= most or row.answer >= self.settings.answer
        return is_full or row.tokens[-1] in self._eos

    def _is_due(self, row: Unfinished) -> bool:
        """True if the rollout must be interrupted now."""
        return row.thinking and len(row.tokens) >= row.request.cut

    def _interrupt(self, row: Unfinished) -> None:
        start = len(row.request.prompt.tokens) + len(row.tokens)
        for token in self.phrase:
            self._note(row, token, 0.0, self.version, forced=True)
        self._to_read.append((start, start + len(self.phrase)))

    def _finish(self, row: Unfinished) -> Finished:
        if row.request.place in self.unended:
            self.unended[row.request.place] = row.salt, (*row.request.prompt.tokens, *row.tokens)
        rollout = Rollout(
            prompt=row.request.prompt,
            tokens=np.array(row.tokens, dtype=np.int64),
            logprobs=np.array(row.logprobs, dtype=np.float32),
            versions=np.array(row.versions, dtype=np.int32),
            forced=np.array(row.forced, dtype=np.bool_),
            truncated=row.tokens[-1] not in self._eos,
        )
        return Finished(request=row.request, rollout=rollout)

    def _warn_of_preemptions(self) -> None:
        """Warn of the first preemption, and whenever the count has doubled since the last warning."""
        count = self.engine.preemptions.count - self._preempted_before
        if count >= self._warns_at and not self.recompute:
            self._warns_at = 2 * count
            print(
                f"warning: vLLM's cache has been full {count} times; keys and values of preempted rollouts were "
                f"recomputed with the weights of that moment; raise generator.cache_tokens, or set it to null",
                flush=True,
            )

    def state_dict(self) -> dict[str, Any]:
        """Tokens so far, without keys and values, and the weights."""
        return {
            "weights": self._weights,
            "version": self.version,
            "waiting": list(self.waiting),
            "to_read": list(self._to_read),
            "rows": [row.to_state() for row in self._rows.values()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from these tokens; all keys and values are recomputed with the state's weights."""
        if state["weights"] is not None:
            self.set_weights(state["weights"], state["version"])
        self.version = state["version"]
        self._to_read = [tuple(one) for one in state["to_read"]]
        self.waiting = deque(state["waiting"])
        for name in self._rows:
            self.engine.drop(name)
        self._rows = {}
        if state["rows"]:
            print(
                f"vLLM recomputes {len(state['rows'])} unfinished rollouts, because a state holds no keys and values",
                flush=True,
            )
        for saved in state["rows"]:
            row = Unfinished(**Unfinished(**saved).to_state())  # a copy, so that `state` stays unchanged
            self._to_read.append((0, len(row.request.prompt.tokens) + len(row.tokens)))
            self._ask(row)


def seed_of(request: Request, number: int) -> int:
    """Seed for a request's tokens from number `number` on, below 2^63."""
    seed, at = np.array([request.seed], dtype=np.uint64), np.array([number], dtype=np.uint64)
    return int(split_mix_64(seed, at)[0] >> np.uint64(1))
