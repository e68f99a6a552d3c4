"""The sentence on a task: its examples are right by the task's own verifier, and pages have it word for word."""

import pytest
from places import REPOSITORY

from scalerl.recipe import KSmallest, Math, Modular, ReasoningGym
from scalerl.recipe.task_sentences import K_SMALLEST_EXAMPLE, MODULAR_EXAMPLE, task_sentence, task_text
from scalerl.rollout import Prompt
from scalerl.tasks import make_task
from scalerl.tokens.symbols import COLON, SYMBOLS, SymbolTokenizer

TOKENIZER = SymbolTokenizer()


def verdict(task, prompt, reference, answer):
    asked = Prompt(task=task.name, id=prompt, tokens=TOKENIZER.prompt(prompt), answer=reference, difficulty=1)
    return task.judge(asked, [*TOKENIZER.encode(f"</think>{answer}"), *TOKENIZER.eos_ids]).outcome


def test_the_three_smallest_of_the_example_are_its_answer():
    prompt, answer = K_SMALLEST_EXAMPLE
    k, symbols = prompt.split(COLON)
    assert answer == "".join(sorted(symbols, key=SYMBOLS.index)[: int(k)])
    task = make_task(KSmallest(train_prompts=16, validation_prompts=16), TOKENIZER)
    assert verdict(task, prompt, answer, answer) == "right"
    assert task_text(KSmallest()) == f"given {prompt}, write the three smallest symbols, {answer}"


def test_the_program_of_the_example_maps_its_numbers():
    prompt, answer = MODULAR_EXAMPLE
    inputs, outputs = (tuple(map(SYMBOLS.index, side)) for side in prompt.split(COLON))
    assert answer == "x3w2"
    assert outputs == tuple((3 * number + 2) % 17 for number in inputs)
    task = make_task(Modular(modulus=17, train_prompts=16, validation_prompts=16), TOKENIZER)
    assert verdict(task, prompt, (inputs, outputs), answer) == "right"
    assert "maps 0 to 2, 1 to 5, 3 to b" in task_text(Modular())


def test_a_data_set_is_named_as_published_else_by_its_file(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text('{"question": "1 + 1?", "answer": "#### 2"}\n')
    assert task_text(Math(path=str(file), form="gsm8k")) == "solve the mathematics of gsm8k"
    assert task_text(Math(path=str(file))) == "solve the mathematics of train.jsonl"


def test_each_task_of_a_mix_is_named():
    assert task_sentence([KSmallest(), Modular(name="programs")]) == (
        f"Tasks: k_smallest: {task_text(KSmallest())}; programs: {task_text(Modular())}."
    )


def test_a_data_set_of_the_library_is_named():
    pytest.importorskip("reasoning_gym")
    assert task_text(ReasoningGym(dataset="chain_sum", size=20)) == "solve the problems of chain_sum (reasoning-gym)"


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "docs/how-to.md"])
def test_a_page_says_what_the_pass_rate_is_of(page):
    text = " ".join((REPOSITORY / page).read_text().replace("`", "").split())
    assert task_text(KSmallest()) in text
