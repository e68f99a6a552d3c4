"""The tokenizer in a pretrained model's folder, its chat template around every question.

PretrainedTokenizer(folder).prompt("2 + 2?")    <|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n<think>\n
"""

import json
import re
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from transformers import AutoTokenizer

from scalerl.tokens.characters import END_THINK, PHRASE, THINK

FILES = ("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.jinja", "*.model")
"""What the families keep a tokenizer in."""

_PARTS = re.compile("(</?think>)")


class PretrainedTokenizer:
    """Text to the model's own tokens; `<think>` and `</think>` are never merged with what stands beside them."""

    interruption = PHRASE

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self.size = int(json.loads((folder / "config.json").read_text())["vocab_size"])
        self.eos_ids = self._ends()
        pad = self._tokenizer.pad_token_id
        self.pad_id = self.eos_ids[0] if pad is None else int(pad)
        self.end_think = self.encode(END_THINK)
        if len(self._tokenizer) > self.size:
            raise ValueError(
                f"{folder}: the tokenizer has {len(self._tokenizer)} tokens, the model's embedding {self.size} rows; "
                f"they do not belong together"
            )

    def _ends(self) -> tuple[int, ...]:
        """The tokenizer's own end first, then those that only the generation settings name."""
        ends = [] if self._tokenizer.eos_token_id is None else [self._tokenizer.eos_token_id]
        settings = self.folder / "generation_config.json"
        if settings.exists():
            named = json.loads(settings.read_text()).get("eos_token_id")
            ends += named if isinstance(named, list) else [] if named is None else [named]
        if not ends:
            raise ValueError(f"{self.folder}: neither tokenizer nor generation_config.json names an end of sequence")
        return tuple(dict.fromkeys(ends))

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of `text`, without the marks that the tokenizer would put around it."""
        tokens: list[int] = []
        for part in _PARTS.split(text):
            if part:
                tokens += self._tokenizer.encode(part, add_special_tokens=False)
        return tuple(tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; ids past the tokenizer's own, which only the embedding has, read as U+FFFD."""
        skipped = {self.pad_id, *self.eos_ids}
        text, run = "", []
        for token in (*(int(token) for token in tokens if int(token) not in skipped), None):
            if token is not None and token < len(self._tokenizer):
                run.append(token)
                continue
            text += self._tokenizer.decode(run, clean_up_tokenization_spaces=False)
            text, run = text + ("" if token is None else "\ufffd"), []
        return text

    def prompt(self, question: str) -> tuple[int, ...]:
        """The question as a user's turn, or unchanged if the tokenizer has no chat template; then the start of
        thinking."""
        if self._tokenizer.chat_template is None:
            text = (self._tokenizer.bos_token if self._adds_bos() else "") + question
        else:
            turn = [{"role": "user", "content": question}]
            text = self._tokenizer.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
            assert isinstance(text, str)
        return self.encode(text if text.rstrip().endswith(THINK) else f"{text}{THINK}\n")

    def _adds_bos(self) -> bool:
        bos = self._tokenizer.bos_token_id
        return bos is not None and bos in self._tokenizer.encode("a")[:1]

    def save(self, folder: Path) -> None:
        """Copy what `transformers` and vLLM load beside a model."""
        for pattern in (*FILES, "generation_config.json"):
            for path in self.folder.glob(pattern):
                shutil.copyfile(path, folder / path.name)


@lru_cache(maxsize=4)
def read_tokenizer(path: str, digest: str) -> PretrainedTokenizer:
    """The tokenizer of the folder with this content; a large vocabulary is read once in a process."""
    return PretrainedTokenizer(Path(path))
