"""A tokenizer's chat template: the question as a user's turn, the assistant's turn opened after it.

    ChatTemplate(tokenizer, folder, thinks=True).turn("2?")   <|im_start|>user\\n2?<|im_end|>\\n<|im_start|>assistant\\n

A template may ask for today's date. One recipe and seed must give one prompt, so every day is DAY here.
"""

from collections.abc import Container, Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from scalerl.tokens.reader import END_THINK, THINK

DAY = datetime(2024, 7, 26)
"""The day that Llama 3's template itself takes where it is told none."""
RENDERINGS = 16
"""A template that draws one of two texts at random gives the same every time with a chance of 1 in 32,768."""
QUESTION, ANSWER = "What is 2 + 2?", "It is 4."


class ChatTemplate:
    """A question with what the model's template writes around it, or as it is if there is no template.

    The template is asked for thinking, or for none, as the recipe says.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, folder: Path, *, thinks: bool) -> None:
        self._tokenizer, self.folder = tokenizer, folder
        self._switches = {"enable_thinking": thinks, "thinking": thinks, "strftime_now": DAY.strftime}
        self._refuse(thinks)

    @property
    def exists(self) -> bool:
        """Whether the tokenizer has one."""
        return self._tokenizer.chat_template is not None

    def turn(self, question: str) -> str:
        """The question as the model is asked."""
        if not self.exists:
            return self._bos + question
        text = self._rendered([{"role": "user", "content": question}], opens_answer=True)
        if question.strip() not in text:
            raise ValueError(
                f"{self.folder}: the chat template leaves out the question {question[:60]!r}: it writes {text[:200]!r}"
            )
        return text

    @cached_property
    def end_id(self) -> int | None:
        """The token that ends an assistant's turn; None if the template writes none, or shows no answers."""
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
        """What is odd and does no harm here, as sentences; the model itself names the ends of sequence `named_ends`."""
        if not self.exists:
            return
        if self.end_id is None:
            yield "the chat template writes no token at the end of an answer, so the model may never end one"
        elif self.end_id not in named_ends:
            token = self._tokenizer.decode([self.end_id])
            yield (
                f"the chat template ends an answer with {token!r} ({self.end_id}), which neither the tokenizer nor "
                f"generation_config.json names as an end of sequence; here it ends one too"
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

    def _rendered(self, turns: list[dict[str, str]], *, opens_answer: bool) -> str:
        try:
            text: Any = self._tokenizer.apply_chat_template(
                turns, add_generation_prompt=opens_answer, tokenize=False, **self._switches
            )
        except (TemplateError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{self.folder}: the chat template fails on a single user's turn ({error}); mend chat_template.jinja, "
                f"or chat_template in tokenizer_config.json, or remove it to ask questions as they are"
            ) from None
        return text

    def _refuse(self, thinks: bool) -> None:
        """ValueError for a template with which one question would have several prompts, or none that asks the model."""
        texts = {self.turn(QUESTION) for _ in range(RENDERINGS)}
        if len(texts) > 1:
            one, other, *_ = sorted(texts)
            raise ValueError(
                f"{self.folder}: the chat template asks one question in several ways, as {one[:200]!r} and as "
                f"{other[:200]!r}; take what is drawn at random out of it, so that a run can be repeated"
            )
        text = texts.pop()
        if thinks and text.rstrip().endswith(END_THINK):
            raise ValueError(
                f"{self.folder}: the chat template closes thinking before the model writes ({text[-60:]!r}); take that "
                f"out of it, or set generation.thinking to 'none'"
            )
        if missing := self._missing_opening(text):
            raise ValueError(
                f"{self.folder}: the chat template opens no turn of the model: after the question it writes "
                f"{text.rpartition(QUESTION)[2]!r}, and before an answer also {missing!r}. Write that at its end, in "
                f"{{% if add_generation_prompt %}}...{{% endif %}}"
            )

    def _missing_opening(self, prompt: str) -> str:
        """What stands between a question and its answer in a conversation, and that a prompt lacks; thinking aside."""
        between = self._conversation.rpartition(ANSWER)[0].rpartition(QUESTION)[2]
        opened = prompt.rpartition(QUESTION)[2]
        if not self.exists or not between.startswith(opened.rstrip()):
            return ""
        return between.removeprefix(opened.rstrip()).replace(THINK, "").replace(END_THINK, "").strip()

    @property
    def _bos(self) -> str:
        """What the tokenizer itself puts before a text."""
        bos, first = self._tokenizer.bos_token, self._tokenizer.encode("a")[:1]
        return bos if isinstance(bos, str) and self._tokenizer.bos_token_id in first else ""
