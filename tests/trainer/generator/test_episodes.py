"""Episodes keep every sampled id, whatever the template: ten thousand turns, and what a turn is for the generator."""

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from trainer.tiny import random_policy, tiny_recipe
from trainer.tiny_text_model import END
from trainer.tokens.test_chat_template import TEMPLATES
from trainer.tokens.test_next_turn import QWEN3, both, rendered

from scalerl.evaluation.held_out import reading_columns
from scalerl.generator.episode_generator import EpisodeGenerator
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.interruption_phrase import rollout_phrase
from scalerl.generator.make import make_generator, with_episodes
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.prompts.judge import judgements
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import Rollout
from scalerl.tasks.episodes import EpisodesTask
from scalerl.tokens import make_tokenizer

GAMES = '''\
import random
from scalerl.environments.protocol import Reply

WORDS = ["yes", "No!", "the answer is", "4", "é", "\\t", " ", "\\n", "\\n\\n", '"q"', "{x}", "what"]


class Chatter:
    """Says anything, with white space anywhere; one episode in five ends early."""

    def start(self, seed, row):
        self.left = random.randint(5, 30) if seed % 5 == 0 else None
        return f"  {seed}? \\n"

    def act(self, text):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                return Reply("You win.", reward=1.0, end="won")
        return Reply("".join(random.choices(WORDS, k=random.randint(0, 6))) + text[:2], reward=0.125)


class Symbols:
    """Says symbols until its number of turns is over, and one that no vocabulary has if asked for it."""

    def __init__(self, foreign=-1):
        self.foreign, self.turn = foreign, 0

    def start(self, seed, row):
        return f"{seed}:"

    def act(self, text):
        self.turn += 1
        return Reply("Ω" if self.turn == self.foreign else f"{self.turn}:", reward=0.5)
'''


def game(folder, name, **settings):
    (folder / "my_games.py").write_text(GAMES)
    return Episodes.model_validate(
        {"environment": {"type": "custom", "function": f"my_games:{name}", "folder": str(folder)}, **settings}
    )


class Sampler(Generator):
    """Finishes every waiting request in one step with random ids, and keeps what was asked and what was sampled."""

    def __init__(self, tokenizer, theirs, seed):
        super().__init__(slots=10**6)
        self.version, self.draws = 0, random.Random(seed)
        # Letters that the vocabulary also has merged, so that the ids are not those of the text tokenised again.
        texts = {token: theirs.decode([token]) for token in range(len(theirs))}
        self.pool = [token for token, text in texts.items() if set(text) <= set("whatisenr")]
        self.ends = [tokenizer.eos_ids[:1], tokenizer.eos_ids[:1], tokenizer.eos_ids[1:2], ()]
        self.end_think = tokenizer.end_think if tokenizer.reader.thinks else ()
        self.asked: dict[tuple[int, int], list[tuple[Request, Rollout]]] = {}

    @property
    def active(self):
        return 0

    def step(self):
        self.version += 1
        asked, finished = [*self.waiting], []
        self.waiting.clear()
        for request in asked:
            end = self.draws.choice(self.ends)
            thought = [self.draws.choice(self.pool) for _ in range(2)] if self.end_think else []
            answer = [self.draws.choice(self.pool) for _ in range(self.draws.randint(1, 6))]
            tokens = [*thought, *self.end_think, *answer, *end]
            rollout = Rollout(
                prompt=request.prompt,
                tokens=np.array(tokens, dtype=np.int64),
                logprobs=np.array([-self.draws.random() for _ in tokens], dtype=np.float32),
                versions=np.full(len(tokens), self.version, dtype=np.int32),
                forced=np.array([self.draws.random() < 0.1 for _ in tokens]),
                truncated=not end,
            )
            self.asked.setdefault((request.group, request.index), []).append((request, rollout))
            finished.append(Finished(request=request, rollout=rollout))
        return finished, StepWork(sequences=len(asked))

    def set_weights(self, weights, version): ...

    def score(self, tokens):
        raise NotImplementedError

    def state_dict(self):
        return {}

    def load_state_dict(self, state): ...


def broken_turns(asked, finished):
    """Turns after the first whose ids do not begin with those of the turn before, and turns of the result that are not
    what was sampled; beside them the number of turns looked at."""
    broken, count = [], 0
    for one in finished:
        turns = asked[one.request.group, one.request.index]
        for number, (request, rollout) in enumerate(turns):
            count += 1
            before = () if number == 0 else (*turns[number - 1][0].prompt.tokens, *turns[number - 1][1].tokens.tolist())
            place, shift = one.rollout.episode.turns[number], len(one.request.prompt.tokens)
            whole = (*one.request.prompt.tokens, *one.rollout.tokens.tolist())
            span = slice(place.start, place.stop)
            is_kept = all(
                np.array_equal(getattr(one.rollout, name)[span], getattr(rollout, name))
                for name in ("tokens", "logprobs", "versions", "forced")
            )
            begins = request.prompt.tokens[: len(before)] == before and whole[: shift + place.start] == (
                request.prompt.tokens
            )
            if not (begins and is_kept):
                broken.append((one.request.group, one.request.index, number))
        assert len(turns) == len(one.rollout.episode.turns)
    return broken, count


CHATS = {
    "smollm2 that thinks": (TEMPLATES["smollm2"], True, "template"),
    "llama 3": (TEMPLATES["llama 3"], False, "template"),
    "qwen 2.5": (TEMPLATES["tools"], False, "template"),
    "qwen 3, kept": (QWEN3, True, "keep"),
}


def chats(name, folder, num_episodes=50, turns=60):
    """Played episodes of one template: the sampler, the results, and both tokenizers."""
    template, thinks, history = CHATS[name]
    ours, theirs = both(folder / "model", template, thinks=thinks)
    settings = game(
        folder, "Chatter", turns=turns, history=history, train=num_episodes, validation=2, context_tokens=10**6
    )
    task = EpisodesTask(settings, ours)
    sampler = Sampler(ours, theirs, seed=len(name))
    generator = EpisodeGenerator(sampler, {settings.title: settings}, ours, max_tokens=16, temperature=1.0, clock="off")
    requests = [Request(prompt=prompt, group=group, index=0, seed=group) for group, prompt in enumerate(task.train)]
    try:
        finished = decode_all(generator, requests)
    finally:
        generator.close()
    return SimpleNamespace(sampler=sampler, finished=finished, ours=ours, theirs=theirs, thinks=thinks)


def test_ids_of_ten_thousand_turns_begin_with_those_of_the_turn_before(tmp_path):
    total = retokenised = 0
    for name, (_, thinks, history) in CHATS.items():
        (tmp_path / name).mkdir()
        played = chats(name, tmp_path / name)
        asked, finished = played.sampler.asked, played.finished
        broken, count = broken_turns(asked, finished)
        assert broken == []
        total += count
        assert {one.rollout.episode.end for one in finished} == {"won", "too_many_turns"}
        for one in finished:
            turns = asked[one.request.group, one.request.index]
            mask = one.rollout.written
            assert mask.sum() == one.rollout.num_written == sum(len(rollout.tokens) for _, rollout in turns)
            assert not one.rollout.logprobs[~mask].any()
            assert not one.rollout.forced[~mask].any()
            if one.request.group % 4:
                continue  # texts take longer than ids
            ids = (*one.request.prompt.tokens, *one.rollout.tokens.tolist())
            text = played.theirs.decode(ids)
            retokenised += played.ours.encode(text) != ids
            if history == "keep":
                continue
            # The template's own conversation of these texts is, letter by letter, what the policy read and wrote.
            opened, header = "<think>\n" if thinks else "", "user\n\n" if name == "llama 3" else "user\n"
            said = [f"  {one.request.prompt.answer.seed}? \n"]
            for place, following in zip(one.rollout.episode.turns, one.rollout.episode.turns[1:], strict=False):
                written = played.theirs.decode(one.rollout.tokens[place.start : place.stop]).removesuffix(END)
                between = played.theirs.decode(one.rollout.tokens[place.stop : following.start])
                said += [opened + written, between.partition(header)[2].rpartition(END)[0]]
            last = one.rollout.episode.turns[-1]
            whole = rendered(played.theirs, *said) + opened
            assert played.theirs.decode(ids[: len(one.request.prompt.tokens) + last.start]) == whole
    assert total >= 10_000
    assert retokenised > 26  # of 52 episodes: tokenised again, they would have other ids


def test_the_check_of_turns_fails_when_one_id_changes(tmp_path):
    played = chats("qwen 2.5", tmp_path, num_episodes=8, turns=6)
    asked, finished = played.sampler.asked, played.finished
    assert broken_turns(asked, finished) == ([], 8 * 6)
    request, rollout = asked[3, 0][4]
    tokens = [*request.prompt.tokens]
    tokens[-20] += 1  # in an earlier turn, or in what was said to it
    asked[3, 0][4] = (replace(request, prompt=replace(request.prompt, tokens=tuple(tokens))), rollout)
    assert (3, 0, 4) in broken_turns(asked, finished)[0]
    asked[3, 0][4] = (request, rollout)
    for name, change in [("tokens", 1), ("logprobs", 0.5), ("versions", 1)]:
        changed = getattr(rollout, name).copy()
        changed[0] += change
        asked[3, 0][4] = (request, replace(rollout, **{name: changed}))
        assert (3, 0, 4) in broken_turns(asked, finished)[0]
    asked[3, 0][4] = (request, rollout)
    assert broken_turns(asked, finished)[0] == []


# --- turns of a thinking model, decoded by the built-in generator ----------------------------------------------------


def symbols_recipe(folder, foreign=-1, **task):
    settings = game(folder, "Symbols", settings={"foreign": foreign}, train=4, validation=2, **task)
    return tiny_recipe(
        tasks=[settings.model_dump(mode="json")],
        length_control={"type": "interruption", "earliest": 0.5},
        generation={"thinking": 4, "answer": 3},
    )


def decoded(recipe, cuts):
    """Episodes of the recipe's task, one for each cut, by a random policy."""
    task = EpisodesTask(recipe.tasks[0], make_tokenizer(recipe.model))
    policy = random_policy(recipe)

    def maker():
        return make_generator(recipe, policy, slots=3, max_prompt=recipe.most_before_turn)

    generator = with_episodes(maker, recipe, clock="off")
    requests = [
        Request(prompt=task.train[i % 4], group=i % 4, index=i // 4, seed=100 + i, cut=cut)
        for i, cut in enumerate(cuts)
    ]
    try:
        return task, [one.rollout for one in decode_all(generator, requests)]
    finally:
        generator.close()


def test_every_turn_of_a_thinking_model_is_interrupted_at_its_cut(tmp_path):
    recipe = symbols_recipe(tmp_path, turns=3, context_tokens=200)
    phrase = rollout_phrase(recipe, make_tokenizer(recipe.model))
    task, rollouts = decoded(recipe, [2] * 6)
    assert len(rollouts) == 6
    for one in rollouts:
        assert (one.episode.end, len(one.episode.turns)) == ("too_many_turns", 3)
        for turn in one.episode.turns:
            tokens, forced = (array[turn.start : turn.stop] for array in (one.tokens, one.forced))
            ends = np.flatnonzero(np.isin(tokens, phrase[-1:]))
            thought = int(ends[0]) if len(ends) else len(tokens)
            assert thought <= 2
            # Forced is the phrase at the cut, of turns that still thought, and nothing else.
            is_cut = len(tokens) > 2 and thought == 2 and bool(forced[2])
            assert np.flatnonzero(forced).tolist() == ([2] if is_cut else [])
            assert turn.stop - turn.start <= recipe.generation.max_tokens
            assert not one.logprobs[turn.start : turn.stop][forced].any()
    interrupted = [bool(one.forced.any()) for one in rollouts]
    assert any(interrupted)
    more_than_one = [
        sum(bool(one.forced[turn.start : turn.stop].any()) for turn in one.episode.turns) for one in rollouts
    ]
    assert max(more_than_one) > 1
    judged = judgements(task, rollouts)
    named: Any = SimpleNamespace(name="s", validation=task.train)
    columns = reading_columns(named, list(zip(rollouts, judged, strict=True)))
    assert columns["interrupted"] == sum(interrupted) / 6
    assert columns["mean_tokens"] == sum(one.num_written for one in rollouts) / 6
    _, free = decoded(recipe, [10**6] * 6)
    assert not any(one.forced.any() for one in free)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_turn_is_cut_after_tokens_per_turn_and_the_template_ends_it(tmp_path, most):
    recipe = symbols_recipe(tmp_path, turns=3, context_tokens=200, tokens_per_turn=most)
    assert recipe.most_written == 3 * most
    _, rollouts = decoded(recipe, [10**6] * 6)
    tokenizer = make_tokenizer(recipe.model)
    for one in rollouts:
        sizes = [turn.stop - turn.start for turn in one.episode.turns]
        assert max(sizes) <= most
        for number, (turn, following) in enumerate(
            zip(one.episode.turns, one.episode.turns[1:], strict=False), start=1
        ):
            last, said = int(one.tokens[turn.stop - 1]), one.tokens[turn.stop : following.start].tolist()
            assert tuple(said) == tokenizer.next_turn(f"{number}:", after=last)
            assert (said[0] == tokenizer.eos_ids[0]) == (last not in tokenizer.eos_ids)
        assert one.truncated == (int(one.tokens[-1]) not in tokenizer.eos_ids)


def test_an_episode_ends_where_another_turn_has_no_room_or_cannot_be_written(tmp_path):
    # Turns may have 4 + 3 tokens and end of thinking; prompts have 3, and between turns stand 3 or 4.
    recipe = symbols_recipe(tmp_path, turns=50, context_tokens=30)
    _, rollouts = decoded(recipe, [2] * 6)
    limit = recipe.generation.max_tokens
    for one in rollouts:
        assert one.episode.end == "too_long"
        assert one.truncated
        last = one.episode.turns[-1]
        assert len(one.tokens) == last.stop
        assert len(one.prompt.tokens) + last.start + limit <= 30 < len(one.prompt.tokens) + last.stop + 4 + limit
    recipe = symbols_recipe(tmp_path, foreign=2, turns=5, context_tokens=200)
    _, rollouts = decoded(recipe, [2] * 6)
    for one in rollouts:
        assert (one.episode.end, len(one.episode.turns)) == ("error", 2)
        assert one.episode.why.startswith("'Ω' in 'Ω' is not one of the symbols")
