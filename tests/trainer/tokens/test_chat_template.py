"""Chat templates as models have them: dates, ends of turns, thinking, and those that ask nothing."""

import json
import re

import pytest
from trainer.tiny_text_model import END, END_OF_TEXT, TEMPLATE, text_model
from transformers import AutoTokenizer

from scalerl.tokens.pretrained import PretrainedTokenizer

NO_TURN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def tokenizer_of(folder, template, *, thinks=True, ends=None):
    """A tiny model's tokenizer; `ends` are the ends of sequence that tokenizer and generation settings name."""
    text_model(folder, template=template)
    if ends is not None:
        theirs = AutoTokenizer.from_pretrained(folder)
        theirs.eos_token = ends[0]
        theirs.save_pretrained(folder)
        settings = {"eos_token_id": theirs.convert_tokens_to_ids(ends)}
        (folder / "generation_config.json").write_text(json.dumps(settings))
    return PretrainedTokenizer(folder, thinks=thinks)


def test_todays_date_is_the_same_day_every_day(tmp_path):
    # Llama 3.2's own words.
    dated = (
        "{%- if not date_string is defined %}{%- if strftime_now is defined %}"
        '{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "none" %}{%- endif %}'
        "{%- endif %}Today Date: {{ date_string }}\n" + TEMPLATE
    )
    ours = tokenizer_of(tmp_path / "llama", dated)
    assert ours.decode(ours.prompt("Hi")).startswith("Today Date: 26 Jul 2024\n")


def test_a_clock_that_no_template_has_and_what_is_drawn_at_random_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'now' is undefined"):
        tokenizer_of(tmp_path / "now", "{{ now() }}" + TEMPLATE)
    with pytest.raises(ValueError, match="renders one question in different ways"):
        tokenizer_of(tmp_path / "random", "{{ ['Hello', 'Good day'] | random }}" + TEMPLATE)


def test_the_end_of_a_turn_ends_a_sequence_and_a_model_that_does_not_say_so_is_doubted(tmp_path):
    # As Qwen2.5's base models: the template ends turns with <|im_end|>, the model sequences with <|endoftext|>.
    base = tokenizer_of(tmp_path / "base", TEMPLATE, ends=[END_OF_TEXT])
    ids = AutoTokenizer.from_pretrained(tmp_path / "base").convert_tokens_to_ids([END_OF_TEXT, END])
    assert base.eos_ids == tuple(ids)
    assert f"ends an answer with '{END}' ({ids[1]})" in base.doubts[0]
    chat = tokenizer_of(tmp_path / "chat", TEMPLATE, ends=[END, END_OF_TEXT])
    assert chat.eos_ids == tuple(reversed(ids))
    assert chat.doubts == ()
    # Named by the generation settings alone, as Phi-3's <|end|>.
    listed = tokenizer_of(tmp_path / "listed", TEMPLATE, ends=[END_OF_TEXT, END])
    assert listed.doubts == ()
    assert tokenizer_of(tmp_path / "none", None, ends=[END_OF_TEXT]).eos_ids == (ids[0],)


def test_a_template_without_an_end_of_turn_is_doubted(tmp_path):
    plain = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    assert "no token at the end of an answer" in tokenizer_of(tmp_path / "plain", plain).doubts[0]


def test_a_template_that_opens_no_turn_of_the_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"opens no turn of the model.*'<\|im_start\|>assistant'"):
        tokenizer_of(tmp_path / "chatml", NO_TURN)


def test_a_template_that_opens_the_models_turn_unasked_is_taken(tmp_path):
    # As Mistral's and Llama 2's: what closes the question opens the answer.
    inst = (
        "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% elif m.role == 'assistant' %} {{ m.content }}<|im_end|>{% else %}{{ raise_exception('no system') }}"
        "{% endif %}{% endfor %}"
    )
    ours = tokenizer_of(tmp_path / "inst", inst)
    assert ours.decode(ours.prompt("Hi")) == "[INST] Hi [/INST]<think>\n"
    assert ours.doubts == ()
    always = NO_TURN + "<|im_start|>assistant\n"
    assert tokenizer_of(tmp_path / "always", always).doubts == ()


def test_thinking_is_asked_for_or_refused_as_the_recipe_says(tmp_path):
    # As DeepSeek V3.1: without `thinking` the prompt closes it.
    switched = TEMPLATE.replace(
        "assistant\n{% endif %}", "assistant\n{{ '<think>' if thinking else '</think>' }}{% endif %}"
    )
    ours = tokenizer_of(tmp_path / "on", switched)
    assert ours.decode(ours.prompt("Hi")).endswith("assistant\n<think>")
    ours = tokenizer_of(tmp_path / "off", switched, thinks=False)
    assert ours.prompt("Hi")[-1] == ours.end_think[-1]
    closed = TEMPLATE.replace("assistant\n{% endif %}", "assistant\n<think>\n\n</think>\n\n{% endif %}")
    with pytest.raises(ValueError, match="closes thinking before the model writes"):
        tokenizer_of(tmp_path / "closed", closed)


@pytest.mark.parametrize("mark", ["<thought>", "[THINK]"])
@pytest.mark.parametrize("thinks", [True, False])
def test_a_template_that_opens_thinking_with_another_mark_is_refused(tmp_path, mark, thinks):
    opens = TEMPLATE.replace("assistant\n{% endif %}", f"assistant\n{mark}\n{{% endif %}}")
    with pytest.raises(ValueError, match=rf"opens thinking with '{re.escape(mark)}', but only '<think>'"):
        tokenizer_of(tmp_path / "exaone", opens, thinks=thinks)


def test_a_question_that_a_template_has_already_written_is_refused(tmp_path):
    written = "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n"
    with pytest.raises(ValueError, match=r"the question has '<\|im_\w+\|>', a control token of the model"):
        tokenizer_of(tmp_path / "chat", TEMPLATE).prompt(written)
    base = tokenizer_of(tmp_path / "base", None)
    assert base.decode(base.prompt("2 + 2? Write <think> </think>.")).startswith("2 + 2? Write <think> </think>.")
    assert base.prompt(written)[: len(base.encode(written))] == base.encode(written)


def test_a_system_prompt_of_the_template_and_a_template_that_strips_thinking_change_nothing_else(tmp_path):
    qwen = "<|im_start|>system\nYou are helpful.<|im_end|>\n" + TEMPLATE.replace(
        "message.content", "message.content.split('</think>')[-1]"
    )
    ours = tokenizer_of(tmp_path / "qwen", qwen)
    assert ours.doubts == ()
    assert ours.decode(ours.prompt("Hi")).count("<think>") == 1


def test_a_prompt_begins_once(tmp_path):
    folder = text_model(tmp_path / "bos", template="{{ bos_token }}" + TEMPLATE)
    theirs = AutoTokenizer.from_pretrained(folder)
    theirs.bos_token = END_OF_TEXT
    theirs.save_pretrained(folder)
    ours = PretrainedTokenizer(folder)
    assert ours.prompt("Hi").count(theirs.convert_tokens_to_ids(END_OF_TEXT)) == 1
    theirs.chat_template = "{{ bos_token }}{{ bos_token }}" + TEMPLATE
    theirs.save_pretrained(folder)
    assert "begins a prompt with '<|endoftext|>' twice" in PretrainedTokenizer(folder).doubts[0]


TURN = "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}"
OPENS = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
TEMPLATES = {
    # SmolLM2's own words: a system prompt unless one is given.
    "smollm2": (
        "{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
        "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
        + TURN + "{% endfor %}" + OPENS
    ),
    # As Gemma's: a system turn is refused, and the model's role has another name.
    "no system role": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
        "{% endif %}{% for m in messages %}{% set role = 'model' if m.role == 'assistant' else m.role %}"
        "{{ '<|im_start|>' + role + '\n' + (m.content | trim) + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}"
    ),
    # As Qwen3's: without thinking, an empty thought is written into the prompt.
    "enable_thinking": (
        "{% for m in messages %}" + TURN + "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
        "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
        "{% endif %}"
    ),
    "two beginnings": "{{ bos_token }}{{ bos_token }}{% for m in messages %}" + TURN + "{% endfor %}" + OPENS,
    # As Qwen2.5's: tools would be listed in the system turn.
    "tools": (
        "{% if tools %}{{ '<|im_start|>system\n# Tools\n' + (tools | tojson) + '<|im_end|>\n' }}{% else %}"
        "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
        "{% for m in messages %}" + TURN + "{% endfor %}" + OPENS
    ),
    # As Llama 3's: headers, content without white space around it, and a date.
    "llama 3": (
        "{{ bos_token }}{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
        "{{ '<|im_start|>system\n\nToday Date: ' + date_string + '<|im_end|>' }}"
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n\n' + (m.content | trim) + '<|im_end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n\n' }}{% endif %}"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_has_the_ids_that_transformers_gives_its_template(name, tmp_path):
    folder = text_model(tmp_path / "model", template=TEMPLATES[name])
    theirs = AutoTokenizer.from_pretrained(folder)
    theirs.bos_token = END_OF_TEXT
    theirs.save_pretrained(folder)
    ours = PretrainedTokenizer(folder, thinks=False)
    question = "What is 2 + 2?"
    ids = theirs.apply_chat_template(
        [{"role": "user", "content": question}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=False,
        enable_thinking=False,
        date_string="26 Jul 2024",
    )
    assert ours.prompt(question) == tuple(ids)
