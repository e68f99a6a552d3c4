#!/usr/bin/env bash
# transformers 5.19.0: a conversation that is truncated from the left loses the mask of all its answers, not only of those
# that were cut.
#
# `apply_chat_template(..., return_assistant_tokens_mask=True)` marks the tokens of the assistant, which are trained. At the
# first answer whose begin is cut off it stops, and the later answers, which are whole, are marked with 0.
# Expected: with truncation_side="left" the last answer is marked at every length that holds it, as it is when the first
# answer is whole or gone. Or a warning.
# Seen: 10 marked tokens with 20 tokens, where both answers are whole; 0 with 17, 12 and 8, where the last one still is. Long
# conversations are trained on nothing: a variant with a shorter context learns from the short ones alone.
# (transformers#34494 was the truncation from the right, and is mended.)
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check transformers==5.19.0 jinja2==3.1.6
HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - 2>/dev/null <<'PYTHON'
import string
import sys
from importlib.metadata import version

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

NAMES = ["<pad>", "<eos>", *string.ascii_letters, *":\n"]
TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'assistant' %}A:{% generation %}{{ message.content }}{{ eos_token }}"
    "{% endgeneration %}{% else %}U:{{ message.content }}\n{% endif %}{% endfor %}"
)
CONVERSATION = [
    {"role": "user", "content": "one"}, {"role": "assistant", "content": "aaaa"},
    {"role": "user", "content": "two"}, {"role": "assistant", "content": "bbbb"},
]
words = Tokenizer(models.WordLevel({name: place for place, name in enumerate(NAMES)}, unk_token="<pad>"))
words.pre_tokenizer = pre_tokenizers.Split("", "isolated")


def marked(side, length):
    """The text of the tokens that are kept, and of those that are marked, at a greatest length."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", truncation_side=side)
    tokenizer.chat_template = TEMPLATE
    found = tokenizer.apply_chat_template(
        CONVERSATION, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, truncation=True, max_length=length
    )
    tokens = tokenizer.convert_ids_to_tokens(found["input_ids"])
    return "".join(tokens), "".join(token for token, mark in zip(tokens, found["assistant_masks"], strict=True) if mark)


print(f"transformers {version('transformers')}: tokens that are kept, and the marked ones; expected bbbb<eos> in each row")
found = {length: marked("left", length) for length in (26, 20, 17, 12, 8)}
for length, (kept, answers) in found.items():
    print(f"left, {length} tokens: {kept!r}, marked {answers!r}")
right = marked("right", 16)
print(f"right, 16 tokens: {right[0]!r}, marked {right[1]!r}")
both, none = "aaaa<eos>bbbb<eos>", ""
is_as_described = [answers for _, answers in found.values()] == [both, both, none, none, none]
sys.exit(not (is_as_described and right[1] == "aaaa<eos>" and all("bbbb<eos>" in kept for kept, _ in found.values())))
PYTHON
