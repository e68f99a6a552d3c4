"""The built-in generator: batched KV cache, continuous batching, weights swapped between decode steps.

Active rows are always the first `active` of the S slots, so every product runs on a dense batch. A finished row is
handed to the next waiting request; with none waiting the last active row moves into its place. New weights replace the
old between two decode steps; keys and values already cached stay as the old weights wrote them (PipelineRL).
"""

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.generator.random_numbers import uniform
from scalerl.generator.request import NEVER, Finished, Request, StepWork
from scalerl.model.kv_cache import Prefill
from scalerl.model.policy import Policy
from scalerl.recipe import Generation
from scalerl.rollout import Prompt, Rollout
from scalerl.tokens import Tokenizer
from scalerl.weights.hugging_face import Weights


class TorchGenerator:
    """Decodes up to `slots` rollouts at once with its own copy of the policy's weights.

    `phrase` is what an interruption forces, the tokenizer's own unless given; it must end with the end of thinking.
    """

    def __init__(
        self,
        policy: Policy,
        settings: Generation,
        tokenizer: Tokenizer,
        *,
        slots: int,
        max_prompt: int,
        phrase: tuple[int, ...] | None = None,
    ) -> None:
        self.policy, self.settings, self.slots = policy, settings, slots
        self.phrase = phrase or tokenizer.encode(tokenizer.interruption)
        self.end_think = tokenizer.end_think
        assert self.phrase[-len(self.end_think) :] == self.end_think, "the phrase must end the thinking part"
        self._is_eos = np.isin(np.arange(tokenizer.size), tokenizer.eos_ids)
        self.version = 0
        self.max_tokens = settings.max_tokens + len(self.phrase) - 1
        self.waiting: deque[Request] = deque()
        self.requests: list[Request] = []
        self.free: list[int] = []
        positions = max_prompt + self.max_tokens
        self._cache = policy.new_cache(slots=slots, positions=positions)
        rows = (slots, positions)
        self._tokens = np.zeros(rows, dtype=np.int64)
        self._logprobs = np.zeros(rows, dtype=np.float32)
        self._versions = np.zeros(rows, dtype=np.int32)
        self._forced = np.zeros(rows, dtype=np.bool_)
        self._length = np.zeros(slots, dtype=np.int64)
        self._prompt_length = np.zeros(slots, dtype=np.int64)
        self._seed = np.zeros(slots, dtype=np.uint64)
        self._cut = np.full(slots, NEVER, dtype=np.int64)
        self._thinking = np.zeros(slots, dtype=np.bool_)
        self._phrase_at = np.full(slots, -1, dtype=np.int64)
        self._answer_length = np.zeros(slots, dtype=np.int64)

    @property
    def active(self) -> int:
        """Rows that hold an unfinished rollout."""
        return len(self.requests) - len(self.free)

    @property
    def busy(self) -> bool:
        """Whether a decode step has anything to do."""
        return bool(self.active or self.waiting)

    @property
    def has_room(self) -> bool:
        """Whether a slot is free that no request waits for."""
        return self.active + len(self.waiting) < self.slots

    @property
    def first_waiting(self) -> int | None:
        """The lowest number of a group none of whose rollouts has begun: requests of a group start in order."""
        return next((request.group for request in self.waiting if request.index == 0), None)

    def set_weights(self, weights: Weights, version: int) -> None:
        """Use a copy of these weights from the next decode step on; cached keys and values stay."""
        self.policy.import_weights(weights)
        self.version = version

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as slots become free."""
        self.waiting.extend(requests)

    @torch.inference_mode()
    def step(self) -> tuple[list[Finished], StepWork]:
        """Start what fits, then choose one token for every active rollout; returns those that ended."""
        new = self._fill()
        n = self.active
        if n == 0:
            return [], StepWork(sequences=0, prefill_tokens=0, context_tokens=0)
        length = self._length[:n]
        sampled, logprobs = self._sample(self._decode(n, new))
        answer_length = self._answer_length[:n]
        answer_length += ~self._thinking[:n]
        tokens, forced = self._force_phrases(n, sampled)
        row = np.arange(n)
        self._tokens[row, length] = tokens
        self._logprobs[row, length] = np.where(forced, 0.0, logprobs)
        self._versions[row, length] = self.version
        self._forced[row, length] = forced
        work = StepWork(
            sequences=n,
            prefill_tokens=sum(len(prompt.tokens) for prompt in new),
            context_tokens=int(length.sum()),
        )
        length += 1
        ended = self._is_eos[tokens]
        full = (length - self._prompt_length[:n] >= self.max_tokens) | (answer_length >= self.settings.answer)
        self.free = np.flatnonzero(ended | full).tolist()
        return [self._finish(i, truncated=not ended[i]) for i in self.free], work

    def _decode(self, n: int, new: dict[Prompt, list[int]]) -> Tensor:
        """Logits [n, V] after the last token of each active row, new prompts prefilled on the way."""
        device, position = self.policy.device, self._length[:n] - 1
        tokens_n = torch.from_numpy(self._tokens[np.arange(n), position]).to(device)
        longest = max((len(prompt.tokens) for prompt in new), default=0)
        prefill = Prefill.of(new, device) if longest > 1 else None
        return self._cache.logits(tokens_n, torch.from_numpy(position).to(device), prefill)

    def _sample(self, logits: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """One token a row from the tempered distribution, by its inverse in float64, and its log-probability."""
        logprobs = (logits / self.settings.temperature).log_softmax(-1)
        cumulative = logprobs.exp().cumsum(-1, dtype=torch.float64)
        n = len(logits)
        own_tokens = (self._length[:n] - self._prompt_length[:n]).astype(np.uint64)
        drawn = torch.from_numpy(uniform(self._seed[:n], own_tokens)).unsqueeze(1).to(logits.device)
        chosen = torch.searchsorted(cumulative, drawn * cumulative[:, -1:], right=True)
        return chosen[:, 0].cpu().numpy(), logprobs.gather(-1, chosen)[:, 0].cpu().numpy()

    def _force_phrases(self, n: int, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Replace what was sampled where an interruption is due or under way; returns tokens and where it did."""
        thought = self._length[:n] - self._prompt_length[:n]
        at, thinking = self._phrase_at[:n], self._thinking[:n]
        at[thinking & (at < 0) & (thought >= self._cut[:n])] = 0
        forced = at >= 0
        tokens = np.where(forced, np.asarray(self.phrase)[at], sampled)
        at[forced] += 1
        at[at == len(self.phrase)] = -1
        thinking &= ~self._ends_thinking(tokens, thought)
        return tokens, forced

    def _ends_thinking(self, tokens: np.ndarray, thought: np.ndarray) -> np.ndarray:
        """Whether these tokens, which come after `thought` others of each row, complete the end of thinking."""
        n, before = len(tokens), self.end_think[:-1]
        ends = (tokens == self.end_think[-1]) & (thought >= len(before))
        for back, token in enumerate(reversed(before), start=1):
            ends &= self._tokens[np.arange(n), self._length[:n] - back] == token
        return ends

    def _finish(self, row: int, *, truncated: bool) -> Finished:
        request = self.requests[row]
        own = slice(int(self._prompt_length[row]), int(self._length[row]))
        rollout = Rollout(
            prompt=request.prompt,
            tokens=self._tokens[row, own].copy(),
            logprobs=self._logprobs[row, own].copy(),
            versions=self._versions[row, own].copy(),
            forced=self._forced[row, own].copy(),
            truncated=truncated,
        )
        return Finished(request=request, rollout=rollout)

    def _fill(self) -> dict[Prompt, list[int]]:
        """Give free rows to waiting requests and close the gaps that remain; returns new prompts and their rows."""
        new: dict[Prompt, list[int]] = {}
        while self.waiting and (self.free or len(self.requests) < self.slots):
            request = self.waiting.popleft()
            if self.free:
                row = self.free.pop(0)
                self.requests[row] = request
            else:
                row = len(self.requests)
                self.requests.append(request)
            new.setdefault(request.prompt, []).append(row)
            size = len(request.prompt.tokens)
            self._tokens[row, :size] = request.prompt.tokens
            self._length[row] = self._prompt_length[row] = size
            self._seed[row], self._cut[row] = request.seed, request.cut
            self._thinking[row], self._phrase_at[row] = True, -1
            self._answer_length[row] = 0
        self._close_gaps()
        return new

    def _close_gaps(self) -> None:
        """Move the last active rows into the free ones; rows filled in the same step lie below every free row."""
        kept = self.active
        target = [row for row in self.free if row < kept]
        source = sorted(set(range(kept, len(self.requests))) - set(self.free))
        if source:
            self._cache.move(target, source)
            for array in self._row_arrays():
                array[target] = array[source]
            for to, since in zip(target, source, strict=True):
                self.requests[to] = self.requests[since]
        del self.requests[kept:]
        self.free = []

    def _row_arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self._tokens, self._logprobs, self._versions, self._forced, self._length, self._prompt_length,
            self._seed, self._cut, self._thinking, self._phrase_at, self._answer_length,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Everything the next step depends on, weights included. Keys and values reach as far as the longest row."""
        n = len(self.requests)
        reach = int(self._length[:n].max(initial=0))
        return {
            "weights": self.policy.exported_weights(),
            "version": self.version,
            "waiting": list(self.waiting),
            "requests": list(self.requests),
            "free": list(self.free),
            "kv": self._cache.kv[:, :n, :, :, :reach].clone(),
            "rows": [array[:n].copy() for array in self._row_arrays()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.set_weights(state["weights"], state["version"])
        self.waiting = deque(state["waiting"])
        self.requests, self.free = list(state["requests"]), list(state["free"])
        n = len(self.requests)
        self._cache.kv[:, :n, :, :, : state["kv"].shape[4]] = state["kv"]
        for array, saved in zip(self._row_arrays(), state["rows"], strict=True):
            array[:n] = saved
