"""The built-in generator: batched KV cache, continuous batching, weights swapped between decode steps.

Active rows are always the first `active` of the S slots, so every product runs on a dense batch. A finished row goes to
the next waiting request; if none waits, the last active row moves into its place. New weights replace the old between
two decode steps. Cached keys and values stay as the old weights computed them (PipelineRL), or are recomputed.

Between two turns of an episode its row is held behind the active ones, unless another request needs it. Of a later turn
in the same row only what the environment said is prefilled; in another row, all of it.
"""

from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scalerl.errors import Diverged
from scalerl.generator.generator import Generator
from scalerl.generator.interruption_phrase import ending_phrase, tokens_with_phrase
from scalerl.generator.random_numbers import uniform
from scalerl.generator.request import NEVER, Finished, Request, StepWork
from scalerl.model.head import chunks
from scalerl.model.kv_cache import Prefill
from scalerl.model.policy import Policy
from scalerl.recipe import Generation
from scalerl.rollout import Prompt, Rollout
from scalerl.tokens import Tokenizer
from scalerl.tokens.reader import ENDED
from scalerl.weights.hugging_face import Weights


class TorchGenerator(Generator):
    """Decodes up to `slots` rollouts at once with its own copy of the policy's weights.

    With `decodes_learner` it uses the learner's own policy instead of a copy: it then decodes only between optimiser
    steps, and `set_weights` only changes the version.

    `phrase` is forced by interruptions, by default the tokenizer's own; raises ValueError if it does not end thinking.
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
        decodes_learner: bool = False,
        recompute: bool = False,
    ) -> None:
        super().__init__(slots)
        self.policy, self.settings = policy, settings
        self._reader = tokenizer.reader
        self.phrase = ending_phrase(tokenizer, phrase)
        self._is_eos = np.isin(np.arange(tokenizer.size), tokenizer.eos_ids)
        self.version = 0
        self.decodes_learner, self.recompute = decodes_learner, recompute
        self.max_tokens = tokens_with_phrase(settings, self.phrase)
        self.requests: list[Request] = []
        self.free: list[int] = []
        self._held: dict[tuple[int, int], int] = {}
        """Free rows of episodes that may have a later turn."""
        self._read_again: list[int] = []
        """Tokens of each row reread after new weights, which the next step reports as work."""
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
        self._most = np.full(slots, self.max_tokens, dtype=np.int64)
        self._thinking = np.zeros(slots, dtype=np.bool_)
        self._phrase_at = np.full(slots, -1, dtype=np.int64)
        self._answer_length = np.zeros(slots, dtype=np.int64)
        self._written = np.zeros(slots, dtype=np.int8)  # bytes of the end of thinking, see `Reader.table`

    @property
    def active(self) -> int:
        return len(self.requests) - len(self.free)

    def set_weights(self, weights: Weights, version: int) -> None:
        """Use a copy of these weights from the next decode step on.

        Cached keys and values stay, or are recomputed with the new weights if `recompute` is set.
        """
        if not self.decodes_learner:
            self.policy.import_weights(weights)
        self.version = version
        if self.recompute and (self.active or self._held):
            self._read_all_again()

    @torch.inference_mode()
    def _read_all_again(self) -> None:
        """Recompute cached keys and values of all tokens so far with the current weights."""
        device, length = self.policy.device, self._length[: len(self.requests)]
        row, width = np.arange(len(length)), int(length.max()) - 1
        rows = torch.from_numpy(row).to(device)
        tokens = torch.from_numpy(self._tokens[: len(length), :width]).to(device)
        last = torch.from_numpy(self._tokens[row, length - 1]).to(device)
        prefills = [Prefill(tokens=tokens, rows=rows, prompts=rows)] if width else []
        self._cache.logits(last, torch.from_numpy(length - 1).to(device), *prefills)
        self._read_again += [int(length[i]) for i in row if i not in self.free or i in self._held.values()]

    @torch.inference_mode()
    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        row = torch.tensor([tokens], device=self.policy.device)
        return self.policy.score(row, 1.0).logprobs_BT[0, 1:].float().cpu().numpy()

    @torch.inference_mode()
    def step(self) -> tuple[list[Finished], StepWork]:
        new, later = self._fill()
        n = self.active
        if n == 0:
            return [], StepWork()
        length = self._length[:n]
        sampled, logprobs = self._sample(self._decode(n, new, later))
        answer_length = self._answer_length[:n]
        answer_length += ~self._thinking[:n]
        tokens, forced = self._force_phrases(n, sampled)
        row = np.arange(n)
        self._tokens[row, length] = tokens
        self._logprobs[row, length] = np.where(forced, 0.0, logprobs)
        self._versions[row, length] = self.version
        self._forced[row, length] = forced
        read = [(0, len(prompt.tokens)) for prompt in new] + [(0, size) for size in self._read_again]
        read += [(held, int(self._prompt_length[row])) for row, held in later.items()]
        self._read_again = []
        work = StepWork(
            sequences=n,
            prefill_tokens=sum(stop - start for start, stop in read),
            prefill_context_tokens=sum((stop - start) * (start + stop + 1) // 2 for start, stop in read),
            context_tokens=int(length.sum()),
        )
        length += 1
        ended = self._is_eos[tokens]
        full = (length - self._prompt_length[:n] >= self._most[:n]) | (answer_length >= self.settings.answer)
        over = np.flatnonzero(ended | full).tolist()
        finished = [self._finish(i, truncated=not ended[i]) for i in over]
        self.free = [*over, *range(n, len(self.requests))]
        places = ((self.requests[i].place, i) for i in over)
        self._held |= {place: i for place, i in places if place in self.unended}
        self._release_when_idle()
        return finished, work

    def forget(self, place: tuple[int, int]) -> None:
        super().forget(place)
        self._held.pop(place, None)
        self._release_when_idle()

    def _release_when_idle(self) -> None:
        if self.decodes_learner and not self.busy and not self.unended:
            self._cache.release()  # the learner needs the memory until the next evaluation

    def _decode(self, n: int, new: dict[Prompt, list[int]], later: dict[int, int]) -> Tensor:
        """Logits [n, V] after the last token of each active row; prefills what is new in the same pass."""
        device, position = self.policy.device, self._length[:n] - 1
        tokens_n = torch.from_numpy(self._tokens[np.arange(n), position]).to(device, non_blocking=True)
        prefills: list[Prefill] = []
        if max((len(prompt.tokens) for prompt in new), default=0) > 1:
            prefills.append(Prefill.of(new, device))
        # Keys and values of a turn's last token are computed with the token after it.
        grown = {row: (held - 1, self._tokens[row, held - 1 : self._length[row]]) for row, held in later.items()}
        if any(len(tokens) > 1 for _, tokens in grown.values()):
            prefills.append(Prefill.after(grown, device))
        return self._cache.logits(tokens_n, torch.from_numpy(position), *prefills)

    def _sample(self, logits: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Sample a token per row by inverse CDF in float64; returns tokens and tempered log-probabilities."""
        n = len(logits)
        own_tokens = (self._length[:n] - self._prompt_length[:n]).astype(np.uint64)
        tokens, chosen_logprobs = self._drawn(logits, uniform(self._seed[:n], own_tokens))
        if np.isnan(chosen_logprobs).any():
            raise Diverged(
                f"with the weights of step {self.version}, the policy's probabilities are NaN; use a smaller "
                "optimiser.learning_rate or a larger optimiser.eps, or another start"
            )
        return tokens, chosen_logprobs

    def _drawn(self, logits: Tensor, uniform_n: NDArray[np.float64]) -> tuple[np.ndarray, np.ndarray]:
        """Tokens at these points of the rows' cumulative distributions, and tempered log-probabilities."""
        n = len(logits)
        if logits.device.type == "cpu":
            from scalerl.model.kernels.sampling import MOST_WORDS, draw_tokens  # numba takes a quarter of a second

            if logits.shape[1] <= MOST_WORDS:
                tokens, logprobs = np.empty(n, np.int64), np.empty(n, np.float32)
                draw_tokens(logits.contiguous().numpy(), self.settings.temperature, uniform_n, tokens, logprobs)
                return tokens, logprobs
        drawn, parts = torch.from_numpy(uniform_n).unsqueeze(1).to(logits.device), []
        for rows in chunks(n, logits.shape[1], logits.device):
            logprobs = (logits[rows] / self.settings.temperature).log_softmax(-1)
            cumulative = logprobs.exp().cumsum(-1, dtype=torch.float64)
            chosen = torch.searchsorted(cumulative, drawn[rows] * cumulative[:, -1:], right=True)
            chosen = chosen.clamp_max(logprobs.shape[1] - 1)  # beyond the last token if the sum is NaN
            parts.append(torch.stack((chosen[:, 0].double(), logprobs.gather(-1, chosen)[:, 0].double())))
        tokens, chosen_logprobs = torch.cat(parts, dim=1).cpu().numpy()  # the only wait in a decode step
        return tokens.astype(np.int64), chosen_logprobs.astype(np.float32)

    def _force_phrases(self, n: int, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Replace sampled tokens of rows with an interruption due or in progress; returns tokens and their mask."""
        if not self._reader.thinks:
            return sampled, np.zeros(n, dtype=np.bool_)
        thought = self._length[:n] - self._prompt_length[:n]
        at, thinking = self._phrase_at[:n], self._thinking[:n]
        at[thinking & (at < 0) & (thought >= self._cut[:n])] = 0
        forced = at >= 0
        tokens = np.where(forced, np.asarray(self.phrase)[at], sampled)
        at[forced] += 1
        at[at == len(self.phrase)] = -1
        written = self._written[:n]
        written[:] = self._reader.table[tokens, written]
        thinking &= written != ENDED
        return tokens, forced

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

    def _fill(self) -> tuple[dict[Prompt, list[int]], dict[int, int]]:
        """Give free rows to waiting requests and close the remaining gaps.

        Returns new prompts and their rows, and rows that continue an episode with the number of tokens they held.
        """
        new: dict[Prompt, list[int]] = {}
        later: dict[int, int] = {}
        rows: list[int] = []
        while self.waiting and (self.free or len(self.requests) < self.slots):
            request = self.waiting.popleft()
            row = self._row_for(request)
            if self._held.get(request.place) == row:
                later[row] = int(self._length[row])
            else:
                new.setdefault(request.prompt, []).append(row)
            if row == len(self.requests):
                self.requests.append(request)
            else:
                self.free.remove(row)
                if self._held.get(before := self.requests[row].place) == row:
                    del self._held[before]
            self.requests[row] = request
            rows.append(row)
        if rows:
            self._begin(rows)
        moved = self._close_gaps()
        if not moved:
            return new, later
        new = {prompt: [moved.get(row, row) for row in rows] for prompt, rows in new.items()}
        return new, {moved.get(row, row): held for row, held in later.items()}

    def _begin(self, rows: list[int]) -> None:
        """Set what is known of each of these rows to the start of its request."""
        requests = [self.requests[row] for row in rows]
        for row, request in zip(rows, requests, strict=True):
            self._tokens[row, : len(request.prompt.tokens)] = request.prompt.tokens
        self._length[rows] = self._prompt_length[rows] = [len(one.prompt.tokens) for one in requests]
        self._seed[rows] = np.array([one.seed for one in requests], dtype=np.uint64)
        self._cut[rows] = [one.cut for one in requests]
        self._most[rows] = [min(one.most, self.max_tokens) for one in requests]
        self._thinking[rows], self._phrase_at[rows] = self._reader.thinks, -1
        self._answer_length[rows] = self._written[rows] = 0

    def _row_for(self, request: Request) -> int:
        """The row of the request's episode, else one that nothing needs, else a new one, else one that is held."""
        if not self._held:
            return self.free[0] if self.free else len(self.requests)
        own = self._held.get(request.place)
        if own is not None:
            have = int(self._length[own])
            if self._tokens[own, :have].tolist() == list(request.prompt.tokens[:have]):
                return own
            del self._held[request.place]  # an earlier turn was rewritten
        if len(self._held) < len(self.free):
            needed = set(self._held.values())
            return next(row for row in self.free if row not in needed)
        return self.free[0] if len(self.requests) == self.slots else len(self.requests)

    def _close_gaps(self) -> dict[int, int]:
        """Move the last active rows into free ones, and rows that are held behind all active ones.

        Returns the new numbers of the rows that moved.
        """
        if not self.free:
            return {}
        kept, free = self.active, set(self.free)
        if not self._cache.keeps_idle_rows:
            self._held = {}
        held = sorted(self._held.values())
        rows = len(self.requests)
        order = _in_places([row for row in range(rows) if row not in free], range(kept))
        order += _in_places(held, range(kept, kept + len(held)))
        moved = {since: row for row, since in enumerate(order) if row != since}
        if moved:
            target, source = list(moved.values()), list(moved)
            self._cache.move(target, source)
            for array in (*self._row_arrays(), self._written):
                array[target] = array[source]
        self.requests = [self.requests[row] for row in order]
        self._held = {place: moved.get(row, row) for place, row in self._held.items()}
        self.free = list(range(kept, len(order)))
        return moved

    def _row_arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self._tokens, self._logprobs, self._versions, self._forced, self._length, self._prompt_length,
            self._seed, self._cut, self._most, self._thinking, self._phrase_at, self._answer_length,
        )  # fmt: skip

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on, including weights; keys and values up to the longest row."""
        n = len(self.requests)
        reach = int(self._length[:n].max(initial=0))
        return {
            "weights": self.policy.exported_weights(),
            "version": self.version,
            "waiting": list(self.waiting),
            "requests": list(self.requests),
            "free": list(self.free),
            "read_again": list(self._read_again),
            "kv": self._cache.taken(n, reach),
            "rows": [array[:n].copy() for array in self._row_arrays()],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.set_weights(state["weights"], state["version"])
        self.waiting = deque(state["waiting"])
        self.requests, self.free = list(state["requests"]), list(state["free"])
        places = ((self.requests[row].place, row) for row in self.free)
        self._held = {place: row for place, row in places if place in self.unended}
        n = len(self.requests)
        self._read_again = list(state["read_again"])
        self._cache.put(state["kv"])
        for array, saved in zip(self._row_arrays(), state["rows"], strict=True):
            array[:n] = saved
        for row in range(n):  # derived from the tokens, so not saved
            own = self._tokens[row, self._prompt_length[row] : self._length[row]]
            self._written[row] = self._reader.written(own.tolist())


def _in_places(rows: list[int], places: range) -> list[int]:
    """The row for each place: rows that are in one of the places stay there, and the others fill the gaps in order."""
    away = iter([row for row in rows if row not in places])
    present = set(rows)
    return [place if place in present else next(away) for place in places]
