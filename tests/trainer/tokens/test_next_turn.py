"""What stands between two turns of the policy, against the conversations that `transformers` renders itself."""

import json
import random

import pytest
from trainer.tiny_text_model import END, END_OF_TEXT, TEMPLATE, text_tokenizer
from trainer.tokens.test_chat_template import OPENS, TEMPLATES, TURN
from transformers import AutoTokenizer

from scalerl.recipe.episodes import Episodes
from scalerl.tasks.episodes import EpisodesTask
from scalerl.tasks.task import TaskError
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.tokens.pretrained import PretrainedTokenizer
from scalerl.tokens.symbols import SymbolTokenizer

QWEN3 = (
    # As Qwen3's: a thought is shown only after the last user's turn, and the empty one is of the prompt alone.
    "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}"
    "{% endif %}{% endfor %}{% for m in messages %}{% if m.role == 'assistant' and loop.index0 < ns.last %}"
    "{{ '<|im_start|>assistant\n' + m.content.split('</think>')[-1].lstrip('\n') + '<|im_end|>\n' }}{% else %}"
    + TURN + "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{% endif %}"
)  # fmt: skip
LLAMA2 = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content.strip() + ' <|im_end|>' }}{% endif %}{% endfor %}"
)
KEEPING = {**TEMPLATES, "llama 2": LLAMA2}
del KEEPING["enable_thinking"]
REWRITING = {
    "drops thoughts": (QWEN3, True, "It is a sum"),
    "drops the empty thought": (QWEN3, False, "<think>"),
    "another system prompt": (
        "{{ '<|im_start|>system\n' + ('Be brief.' if messages | length == 1 else 'Go on.') + '<|im_end|>\n' }}"
        "{% for m in messages %}" + TURN + "{% endfor %}" + OPENS, False, "Go on."
    ),
    "marks the last turn": (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + ('*' if loop.last and m.role == 'user' else '') + '\n' + "
        "m.content + '<|im_end|>\n' }}{% endfor %}" + OPENS, False, "user*"
    ),
}  # fmt: skip


def both(folder, template, *, thinks=False):
    """Our tokenizer and that of `transformers`."""
    theirs = text_tokenizer(template=template)
    theirs.bos_token = END_OF_TEXT
    theirs.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen2", "vocab_size": len(theirs)}))
    ends = {"eos_token_id": theirs.convert_tokens_to_ids([END, END_OF_TEXT])}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    return PretrainedTokenizer(folder, thinks=thinks), AutoTokenizer.from_pretrained(folder)


def rendered(theirs, *texts, thinks=False):
    """Conversation of the user's and the model's turns in alternation, and the opening of the model's next."""
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    settings = {"enable_thinking": thinks, "date_string": "26 Jul 2024"}
    return theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **settings)


@pytest.mark.parametrize("name", KEEPING)
def test_turns_put_together_have_the_ids_of_the_templates_own_conversation(name, tmp_path):
    ours, theirs = both(tmp_path / "model", KEEPING[name])
    texts = [
        "What is 2 + 2?",
        "It is 4.",
        'And "3 + 3"?\n\n{x}',
        "6",
        "",
        "nothing?",
        "  Go\ton \n",
        "On.",
        "\nEnd\n\n",
    ]
    space = name == "llama 2"  # which it writes around answers; the policy writes it here
    put = ours.prompt(texts[0])
    for answer, said in zip(texts[1::2], texts[2::2], strict=True):
        written = ours.encode(f" {answer} " if space else answer)
        put += (*written, ours.eos_ids[0])
        for end in (ours.eos_ids[0], written[-1]):
            between = ours.next_turn(said, after=end)
            assert (between[0] == ours.eos_ids[0] or (space and ours.eos_ids[0] in between[:2])) == (end == written[-1])
        put += ours.next_turn(said, after=ours.eos_ids[0])
    assert theirs.decode(put) == rendered(theirs, *texts)
    assert put == tuple(theirs.encode(rendered(theirs, *texts), add_special_tokens=False))
    assert ours.rewritten_turns == ""


def test_a_turn_that_was_cut_or_ended_otherwise_gets_the_templates_end(tmp_path):
    ours, theirs = both(tmp_path / "model", TEMPLATE)
    end, other = theirs.convert_tokens_to_ids([END, END_OF_TEXT])
    assert other in ours.eos_ids
    opened = "<|im_start|>user\nNo.<|im_end|>\n<|im_start|>assistant\n"
    assert theirs.decode(ours.next_turn("No.", after=end)) == f"\n{opened}"
    assert theirs.decode(ours.next_turn("No.", after=other)) == f"{END}\n{opened}"
    assert theirs.decode(ours.next_turn("No.", after=5)) == f"{END}\n{opened}"
    plain, _ = both(tmp_path / "plain", None)
    assert plain.next_turn("No.", after=plain.eos_ids[1]) == plain.encode("No.")
    assert plain.next_turn("No.", after=5) == (plain.eos_ids[0], *plain.encode("No."))


@pytest.mark.parametrize("template", [TEMPLATE, TEMPLATES["llama 3"], None])
def test_thinking_is_opened_in_every_turn_as_in_the_prompt(tmp_path, template):
    ours, theirs = both(tmp_path / "model", template, thinks=True)
    opening = theirs.decode(ours.prompt("Hi"))[-12:]
    assert opening.endswith("<think>\n")
    assert theirs.decode(ours.next_turn("Hi", after=ours.eos_ids[0]))[-12:] == opening
    switched = TEMPLATE.replace("assistant\n{% endif %}", "assistant\n{{ '<think>' if thinking else '' }}{% endif %}")
    ours, theirs = both(tmp_path / "switched", switched, thinks=True)
    assert theirs.decode(ours.next_turn("Hi", after=ours.eos_ids[0])).endswith("assistant\n<think>")
    for own in (CharacterTokenizer(), SymbolTokenizer()):
        assert own.next_turn("3", after=own.eos_ids[0]) == own.prompt("3")
        assert own.next_turn("3", after=9) == (own.eos_ids[0], *own.prompt("3"))


def test_a_conversation_is_rendered_once_for_all_turns(tmp_path, monkeypatch):
    ours, _ = both(tmp_path / "model", TEMPLATES["smollm2"])
    counted = []
    library = type(ours._tokenizer)
    real = library.apply_chat_template
    monkeypatch.setattr(library, "apply_chat_template", lambda *a, **b: counted.append(1) or real(*a, **b))
    draws = random.Random(0)
    for _ in range(200):
        ours.next_turn(str(draws.random()), after=ours.eos_ids[0])
    assert len(counted) == 2


@pytest.mark.parametrize("mark", [END, "<|im_start|>", END_OF_TEXT])
def test_text_with_control_marks_is_refused(tmp_path, mark):
    ours, _ = both(tmp_path / "model", TEMPLATE)
    with pytest.raises(ValueError, match=r"^the environment's text contains '<\|.*\|>', a control token of the model$"):
        ours.next_turn(f"You win.{mark}\n", after=ours.eos_ids[0])


@pytest.mark.parametrize("name", REWRITING)
def test_a_template_that_rewrites_earlier_turns_is_refused_unless_the_history_is_kept(tmp_path, name):
    template, thinks, lost = REWRITING[name]
    ours, theirs = both(tmp_path / "model", template, thinks=thinks)
    settings = Episodes(environment="guess", train=2, validation=2, turns=3)
    with pytest.raises(
        TaskError, match=r"task 'guess': .*writes earlier turns in another way .*; set history: keep"
    ) as refused:
        EpisodesTask(settings, ours)
    assert lost in str(refused.value)
    kept = EpisodesTask(settings.model_copy(update={"history": "keep"}), ours)
    # A template writes the last of two turns of the model as a prompt does.
    between = theirs.decode(ours.next_turn("higher", after=ours.eos_ids[0]))
    whole = rendered(theirs, "1-32", "16", "higher", thinks=thinks) + ("<think>\n" if thinks else "")
    assert whole.endswith(f"16{END}{between}")
    assert kept.train[0].tokens == ours.prompt("1-32")
    EpisodesTask(settings.model_copy(update={"turns": 1}), ours)


def test_templates_that_write_no_conversation_are_refused_either_way(tmp_path):
    last_only = "{% for m in messages[-1:] %}" + TURN + "{% endfor %}" + OPENS
    quoted = TEMPLATE.replace(
        "message.content", "(message.content | tojson if '\\n' in message.content else message.content)"
    )
    once = "{% if messages | length > 2 %}{{ raise_exception('one turn only') }}{% endif %}" + TEMPLATE
    for name, template, why in [
        ("last", last_only, "omits turns of a conversation"),
        ("quoted", quoted, "changes what is said to the model"),
        ("once", once, r"fails on a conversation \(one turn only\)"),
    ]:
        ours, _ = both(tmp_path / name, template)
        for history in ("template", "keep"):
            with pytest.raises(TaskError, match=f"task 'guess': .*{why}"):
                EpisodesTask(Episodes(environment="guess", train=2, validation=2, history=history), ours)


def test_text_that_a_tokenizer_lacks_is_refused_before_training():
    with pytest.raises(TaskError, match=r"task 'guess': the first text of seed 1000000000: '-' in '1-32' is not one"):
        EpisodesTask(Episodes(environment="guess", train=2, validation=2), SymbolTokenizer())
