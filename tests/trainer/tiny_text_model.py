"""A Qwen2 of a few thousand parameters with a tokenizer and chat template of its own, as a model hub would have it."""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from scalerl.tokens.symbols import COLON, SYMBOLS

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
END, END_OF_TEXT = "<|im_end|>", "<|endoftext|>"
SPARE_ROWS = 3
"""The embedding is larger than the tokenizer, as Qwen's is."""


def text_tokenizer(*, template: str | None = TEMPLATE, thinks: bool = True) -> PreTrainedTokenizerFast:
    """Bytes and a few merges; `thinks` gives it the thinking marks as tokens."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + 20, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=[END_OF_TEXT, "<|im_start|>", END],
    )  # fmt: skip
    text = ["Okay, time is up. Let me stop thinking.", "user assistant", "</think>", "what is the answer"]
    inner.train_from_iterator(text, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END, pad_token=END_OF_TEXT)
    if thinks:
        tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = template
    return tokenizer


def text_model(folder: Path, *, seed: int = 0, hidden: int = 16, **tokenizer_settings) -> Path:
    """Random weights, configuration, tokenizer and generation settings in `folder`."""
    tokenizer = text_tokenizer(**tokenizer_settings)
    config = Qwen2Config(
        vocab_size=len(tokenizer) + SPARE_ROWS,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.convert_tokens_to_ids(END),
        pad_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
    ends: Any = tokenizer.convert_tokens_to_ids([END, END_OF_TEXT])
    model.generation_config = GenerationConfig(eos_token_id=ends, do_sample=True, top_p=0.8)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    assert set(json.loads((folder / "generation_config.json").read_text())["eos_token_id"]) == set(ends)
    assert all(tokenizer.encode(symbol, add_special_tokens=False) for symbol in SYMBOLS + COLON)
    return folder
