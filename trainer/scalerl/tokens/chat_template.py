"""A tokenizer's chat template: the question as a user's turn, followed by the opening of the assistant's turn.

    ChatTemplate(tokenizer, folder, thinks=True).turn("2?")   <|im_start|>user\\n2?<|im_end|>\\n<|im_start|>assistant\\n

A template may ask for today's date. A recipe and seed must give the same prompt every day, so the date is always DAY.
"""

import re
from collections.abc import Callable, Container, Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from scalerl.tokens.messages import Message, Said, as_messages, said_text
from scalerl.tokens.reader import END_THINK, THINK

DAY = datetime(2024, 7, 26)
"""Default date of Llama 3's template."""
RENDERINGS = 16
"""Number of test renderings: a template that picks one of two texts at random passes with chance 1 in 32,768."""
QUESTION, ANSWER, SAID = "What is 2 + 2?", "It is 4.", "And 3 + 3?"
UNLIKE_WORDS = ' \n1. A "b" {c} {{ d }} <e>\n\n2. \u00c9 & \\n \n'
"""Text that a template may strip, and otherwise must write as it is."""
_OTHER_THINKING = re.compile(r"(?:<(?:thought|thinking|thoughts|reasoning|reason|analysis)>|\[THINK\]|◁think▷)\s*\Z")
"""Other openings of a thought at the end of a prompt, as in EXAONE Deep."""


class ChatTemplate:
    """The text that the model's template puts around a question; just the question if there is no template.

    The recipe decides whether the template opens thinking.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, folder: Path, *, thinks: bool) -> None:
        self._tokenizer, self.folder = tokenizer, folder
        self._switches = {"enable_thinking": thinks, "thinking": thinks, "strftime_now": DAY.strftime}
        self._refuse(thinks)

    @property
    def exists(self) -> bool:
        """True if the tokenizer has a template."""
        return self._tokenizer.chat_template is not None

    def turn(self, question: Said) -> str:
        """The question as it is put to the model."""
        if not self.exists:
            return self._bos + said_text(question)
        messages = as_messages(question)
        if mark := self._mark_in(messages):
            raise ValueError(
                f"the question has {mark!r}, a control token of the model, as if a chat template had been applied; "
                "write the question alone, since the model's own template is put around it"
            )
        text = self._rendered(messages, opens_answer=True)
        if omitted := [one["content"] for one in messages if one["content"].strip() not in text]:
            raise ValueError(
                f"{self.folder}: the chat template omits the question {omitted[0][:60]!r}: it writes {text[:200]!r}"
            )
        return text

    def between_turns(self, said: Said) -> str:
        """What stands between two turns of the model: the end of the last one, what was said, and the opening of the
        next; only what was said without a template."""
        if not self.exists:
            return said_text(said)
        messages = as_messages(said)
        if mark := self._mark_in(messages):
            raise ValueError(f"the environment's text contains {mark!r}, a control token of the model")
        if not isinstance(said, str):
            asked = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
            return self._rendered([*asked, *messages], opens_answer=True).rpartition(ANSWER)[2]
        before, after, stripped = self._between
        return f"{before}{stripped(said)}{after}"

    def conversation(self, *turns: str) -> str:
        """The user's and the model's turns in alternation, followed by the opening of the model's next turn."""
        said = [{"role": ("user", "assistant")[i % 2], "content": turn} for i, turn in enumerate(turns)]
        return self._rendered(said, opens_answer=True)

    @cached_property
    def _between(self) -> tuple[str, str, Callable[[str], str]]:
        """Texts before and after what is said to the model, and how that is stripped: rendered once, for all turns."""
        text = self.conversation(QUESTION, ANSWER, SAID)
        _, answered, rest = text.rpartition(ANSWER)
        before, said, after = rest.partition(SAID)
        mark = "" if self.end_id is None else str(self._tokenizer.convert_ids_to_tokens(self.end_id))
        if not (answered and said and mark in before):
            raise ValueError(
                f"{self.folder}: the chat template omits turns of a conversation, so episodes of several turns cannot "
                f"be written with it: it writes {text[-200:]!r}"
            )
        _, _, written = self.conversation(QUESTION, ANSWER, UNLIKE_WORDS).rpartition(ANSWER)
        for stripped in (str, str.strip, str.lstrip, str.rstrip):
            if written == f"{before}{stripped(UNLIKE_WORDS)}{after}":
                return before, after, stripped
        raise ValueError(
            f"{self.folder}: the chat template changes what is said to the model: of {UNLIKE_WORDS!r} it makes "
            f"{written!r}"
        )

    def _mark_in(self, messages: list[Message]) -> str | None:
        """First control token in the messages; None if they have none."""
        return next((mark for mark in self._marks if any(mark in one["content"] for one in messages)), None)

    @cached_property
    def _marks(self) -> list[str]:
        """Control tokens, apart from those of thinking, which a question may mention."""
        tokens = self._tokenizer.added_tokens_decoder.values()
        return [token.content for token in tokens if token.special and token.content not in (THINK, END_THINK)]

    @cached_property
    def end_id(self) -> int | None:
        """Token that ends an assistant's turn; None if the template writes none, or shows no answers."""
        if not self.exists:
            return None
        after = self._conversation.rpartition(ANSWER)[2]
        for token in self._tokenizer.encode(after, add_special_tokens=False):
            if token in self._tokenizer.added_tokens_decoder:
                return token
            if str(self._tokenizer.decode([token])).strip():
                return None
        return None

    def doubts(self, named_ends: Container[int]) -> Iterator[str]:
        """Harmless oddities, as sentences; `named_ends` are the ends of sequence that the model itself names."""
        if not self.exists:
            return
        if self.end_id is None:
            yield "the chat template writes no token at the end of an answer, so the model may never end one"
        elif self.end_id not in named_ends:
            token = self._tokenizer.decode([self.end_id])
            yield (
                f"the chat template ends an answer with {token!r} ({self.end_id}), which neither the tokenizer nor "
                f"generation_config.json names as an end of sequence; it is added as one"
            )
        bos = self._tokenizer.bos_token
        if isinstance(bos, str) and self.turn(QUESTION).startswith(2 * bos):
            yield f"the chat template begins a prompt with {bos!r} twice"

    @cached_property
    def _conversation(self) -> str:
        """A question and its answer; empty if the template shows no answers."""
        turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": ANSWER}]
        try:
            return self._rendered(turns, opens_answer=False)
        except ValueError:
            return ""

    def _rendered(self, turns: list[Message], *, opens_answer: bool) -> str:
        try:
            text: Any = self._tokenizer.apply_chat_template(
                turns, add_generation_prompt=opens_answer, tokenize=False, **self._switches
            )
        except (TemplateError, ValueError, TypeError, KeyError, AttributeError) as error:
            of_what = "a single user's turn" if len(turns) == 1 else "a conversation"
            raise ValueError(
                f"{self.folder}: the chat template fails on {of_what} ({error}); fix chat_template.jinja, "
                f"or chat_template in tokenizer_config.json, or remove the template to ask questions without one"
            ) from None
        return text

    def _refuse(self, thinks: bool) -> None:
        """Raises ValueError for a template that renders a question in several ways or opens no turn of the model."""
        texts = {self.turn(QUESTION) for _ in range(RENDERINGS)}
        if len(texts) > 1:
            one, other, *_ = sorted(texts)
            raise ValueError(
                f"{self.folder}: the chat template renders one question in different ways, as {one[:200]!r} and as "
                f"{other[:200]!r}; remove its randomness, so that runs can be repeated"
            )
        text = texts.pop()
        if thinks and text.rstrip().endswith(END_THINK):
            raise ValueError(
                f"{self.folder}: the chat template closes thinking before the model writes ({text[-60:]!r}); remove "
                f"the closing tag from the template, or set generation.thinking to 'none'"
            )
        if other := _OTHER_THINKING.search(text):
            raise ValueError(
                f"{self.folder}: the chat template opens thinking with {other[0].strip()!r}, but only {THINK!r} and "
                f"{END_THINK!r} are known; remove it from the template's end"
            )
        if missing := self._missing_opening(text):
            raise ValueError(
                f"{self.folder}: the chat template opens no turn of the model. After the question it writes "
                f"{text.rpartition(QUESTION)[2]!r}, and before an answer also {missing!r}. Add the missing text at its "
                f"end, in {{% if add_generation_prompt %}}...{{% endif %}}"
            )

    def _missing_opening(self, prompt: str) -> str:
        """Text between a question and its answer that a prompt lacks, apart from thinking marks."""
        between = self._conversation.rpartition(ANSWER)[0].rpartition(QUESTION)[2]
        opened = prompt.rpartition(QUESTION)[2]
        if not self.exists or not between.startswith(opened.rstrip()):
            return ""
        return between.removeprefix(opened.rstrip()).replace(THINK, "").replace(END_THINK, "").strip()

    @property
    def _bos(self) -> str:
        """Beginning-of-text token that the tokenizer itself adds."""
        bos, first = self._tokenizer.bos_token, self._tokenizer.encode("a")[:1]
        return bos if isinstance(bos, str) and self._tokenizer.bos_token_id in first else ""
