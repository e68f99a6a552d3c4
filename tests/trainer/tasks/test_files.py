"""Task files: three formats read alike, ids that stay, a split without overlap, identity by content."""

import gzip
import json
from collections import Counter
from typing import Any

import datasets
import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from scalerl.recipe import Math, ResolvedRecipe
from scalerl.tasks import TaskError, make_task
from scalerl.tasks.files import TaskRow, read_task_rows
from scalerl.tokens import CharacterTokenizer, SymbolTokenizer

ROWS = [
    {"question": f"{a}+{b}=", "answer": str(a + b), "solution": f"{a} and {b} are {a + b}", "level": a}
    for a in range(12)
    for b in range(12)
]


def write(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def task_in(path, rows=ROWS, **settings):
    return make_task(Math(path=str(write(path, rows)), **settings), CharacterTokenizer())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "sums.jsonl"


def test_every_kind_of_file_holds_the_same_task_as_json_lines(tmp_path, file):
    expected = task_in(file)
    (tmp_path / "sums.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    (tmp_path / "sums.json").write_text(json.dumps(ROWS))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "sums.parquet")
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "one")
    splits: dict[Any, Any] = {"train": datasets.Dataset.from_list(ROWS), "test": datasets.Dataset.from_list(ROWS[:5])}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "several")
    for name in ("sums.jsonl.gz", "sums.json", "sums.parquet", "one", "several"):
        split = "train" if name == "several" else None
        task = make_task(Math(path=str(tmp_path / name), split=split), CharacterTokenizer())
        assert [(p.id, p.tokens, p.answer) for p in make_both(task)] == [
            (p.id, p.tokens, p.answer) for p in make_both(expected)
        ]
    with pytest.raises(ValueError, match=r"no split None; its splits are train, test"):
        make_task(Math(path=str(tmp_path / "several")), CharacterTokenizer())


def test_a_prompt_is_the_template_with_the_question_and_opens_thinking(file):
    (prompt,) = [p for p in make_both(task_in(file, template="Q: {question} \\boxed{}")) if p.answer == "22"]
    assert CharacterTokenizer().decode(prompt.tokens) == "Q: 11+11= \\boxed{}<think>"


def make_both(task):
    return (*task.train, *task.validation)


def test_no_question_is_both_trained_on_and_held_out_and_the_share_is_what_was_asked(file):
    task = task_in(file, validation=0.25)
    ids = [prompt.id for prompt in make_both(task)]
    assert len(set(ids)) == len(ids) == 144
    # Binomial: 36 held out, standard deviation sqrt(144 / 4 * 3 / 4) = 5.2.
    assert abs(len(task.validation) - 36) < 4 * 5.2


def test_ids_and_split_depend_on_the_question_alone_not_on_order_or_company(file, tmp_path):
    one = task_in(file)
    other = task_in(tmp_path / "shuffled.jsonl", [*ROWS[::-1], {"question": "7*7=", "answer": "49"}])
    assert {p.id for p in one.train} <= {p.id for p in other.train}
    assert {p.id for p in one.validation} <= {p.id for p in other.validation}


def test_duplicate_and_long_questions_are_left_out_and_counted(file):
    long = {"question": "x" * 50, "answer": "1"}
    task = task_in(file, [*ROWS, *ROWS[:3], long], template="{question}", max_prompt_tokens=49)
    assert len(make_both(task)) == 144
    assert Counter(row.reason for row in task.left_out) == {"duplicate": 3, "too long": 1}
    assert [(row.where, row.same_as) for row in task.left_out[:2]] == [
        ("sums.jsonl:145", "sums.jsonl:1"),
        ("sums.jsonl:146", "sums.jsonl:2"),
    ]
    assert task.left_out[3].detail == "its prompt has 51 tokens; max_prompt_tokens is 49"
    assert not task.newly_left_out


def test_a_validation_file_is_held_out_whole_and_its_questions_are_not_trained_on(file, tmp_path):
    held = write(tmp_path / "held.jsonl", [*ROWS[:10], {"question": "7*7=", "answer": "49"}])
    task = task_in(file, validation_path=str(held))
    assert (len(task.train), len(task.validation)) == (134, 11)
    assert not {p.tokens for p in task.train} & {p.tokens for p in task.validation}


def test_an_id_column_names_problems_and_two_problems_cannot_share_one(file):
    rows = [row | {"n": i} for i, row in enumerate(ROWS)]
    assert {p.id for p in make_both(task_in(file, rows, id="n", difficulty="level"))} == {str(i) for i in range(144)}
    with pytest.raises(ValueError, match=r"sums\.jsonl:13: id '1' already belongs to sums\.jsonl:1"):
        task_in(file, [row | {"n": 1 if i in (0, 12) else 1000 + i} for i, row in enumerate(ROWS)], id="n")


def test_difficulty_is_a_number_from_its_column(file):
    task = task_in(file, difficulty="level")
    assert {(p.difficulty, int(p.answer) - int(p.difficulty) in range(12)) for p in make_both(task)} == {
        (float(a), True) for a in range(12)
    }
    with pytest.raises(ValueError, match=r"sums\.jsonl:1: difficulty is 'hard'; expected a number"):
        task_in(file, [ROWS[0] | {"level": "hard"}], difficulty="level")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "1+1=", "answer": "2"}\n{"question": \n', r"bad\.jsonl:2: not JSON"),
        ('\n[1, 2]\n', r"bad\.jsonl:2: found \[1, 2\]; expected one JSON object"),
        ('{"query": "1+1=", "answer": "2"}\n', r"bad\.jsonl:1: no question in column one of question, problem, prompt"),
        ('{"question": "1+1=", "answer": null}\n', r"bad\.jsonl:1: no answer .*; columns with a value are question"),
        ('{"question": "1+1=", "answer": [2]}\n', r"bad\.jsonl:1: answer is \[2\]; expected text"),
        ('{"question": "1+1=", "answer": "####"}\n', r"bad\.jsonl:1: gold answer: nothing"),
        ("\n", "0 problems to train on and 0 held out"),
    ],
)  # fmt: skip
def test_an_error_names_file_and_line(tmp_path, text, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        make_task(Math(path=str(path)), CharacterTokenizer())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"question,answer\n", r"must end in \.jsonl, \.jsonl\.gz, \.json or \.parquet"),
        ("b.parquet", b"no parquet", r"b\.parquet: not a readable Parquet"),
        ("c.jsonl.gz", b"no gzip", r"c\.jsonl\.gz: not a readable gzip file"),
        ("c.jsonl.gz", gzip.compress(b'{"question": 1}' * 99, mtime=0)[:-9], r"c\.jsonl\.gz: not a readable gzip file"),
        ("d.json", b"{}", "one list of objects"),
        ("d.json", b"[1]", "row 1: found 1"),
        ("e.jsonl", b"\xef\xbb\xbf\n", r"task 'math': .*e\.jsonl has no rows"),
        (
            "f.parquet",
            b"version https://git-lfs.github.com/spec/v1\n",
            r"f\.parquet: a pointer of Git LFS.*git lfs pull",
        ),
        ("f.jsonl", b"<!DOCTYPE html><html>", r"f\.jsonl: a web page"),
        ("f.jsonl", gzip.compress(b"{}", mtime=0), r"f\.jsonl: compressed by gzip; .*\.jsonl\.gz"),
        ("f.jsonl", b'{"question": 1}'.decode().encode("utf-16"), "UTF-16, not UTF-8"),
        ("f.jsonl", b'[{"question": "1"}]', r"begins with a list; .* must end in \.json"),
        ("f.json", b'{"question": "1"}\n{"question": "2"}', r"a file with one object per line must end in \.jsonl"),
        (
            "g.jsonl",
            b'{"question": [{"role": "user", "content": "1+1"}], "answer": "2"}',
            r"expected text, not chat messages; name the text of one, as `question: question\.0\.content`",
        ),
        ("h.jsonl", b'{"question": "prove", "answer": "proof"}', r"\(the first is h\.jsonl:1: answer is 'proof'"),
        (
            "i.jsonl",
            b'{"question": "why", "solution": "It is clear."}',
            r"\(the first is i\.jsonl:1: its solution states no",
        ),
    ],
)
def test_files_that_are_no_task_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        make_task(Math(path=str(tmp_path / name)), CharacterTokenizer())


ASKED = {"role": "user", "content": "1+1="}
OF_VERL = {"prompt": [ASKED], "reward_model": {"ground_truth": "2", "style": "rule"}}


@pytest.mark.parametrize(
    ("row", "question", "answer"),
    [
        (OF_VERL, "prompt.0.content", "reward_model.ground_truth"),  # DAPO, Eurus
        ({"prompt": [{"role": "system"}, ASKED], "a": ["2"]}, "prompt.1.content", "a.0"),  # OlympiadBench
        (
            {"prompt": json.dumps([ASKED]), "r": json.dumps({"gold": '["2"]'})},
            "prompt.0.content",
            "r.gold.0",
        ),  # Skywork
        ({"m": str([ASKED]), "a.b": "2"}, "m.0.content", "a.b"),
        ({"0": {"value": "1+1="}, "1": {"ground_truth": {"value": "2"}}}, "0.value", "1.ground_truth.value"),  # ORZ
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_part_of_a_column_is_named_by_its_path(tmp_path, row, question, answer, ending):
    rows = [json.loads(json.dumps(row).replace("1+1=", f"{n}+1=")) for n in range(30)]
    path = write(tmp_path / "a.jsonl", rows)
    if ending == "parquet":
        path = tmp_path / "a.parquet"
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    task = make_task(Math(path=str(path), question=question, answer=answer), CharacterTokenizer(thinks=False))
    (prompt,) = [one for one in make_both(task) if task.written(one).text.startswith("7+1=")]
    assert prompt.answer == "2"


@pytest.mark.parametrize(
    ("row", "settings", "message"),
    [
        (OF_VERL, {}, r"question is .*; name the text of one, as `question: prompt\.0\.content`$"),
        (
            {"prompt": json.dumps([{"role": "system", "content": "Think."}, ASKED]), "answer": "2"},
            {},
            r"as `question: prompt\.1\.content`; `template` may show others, as {prompt\.0\.content}$",
        ),
        ({"m": [{"from": "human", "value": "1+1="}], "answer": "2"}, {"question": "m"}, r"`question: m\.0\.value`$"),
        (OF_VERL | {"problem": "1+1="}, {}, r"no answer .* prompt, reward_model\.ground_truth, reward_model\.style"),
        (
            OF_VERL | {"problem": "1+1="},
            {"answer": "reward_model"},
            r"its parts are `answer: reward_model\.ground_truth`, `answer: reward_model\.style`$",
        ),
        ({"problem": "1+1=", "answer": ["2"]}, {}, r"is \['2'\]; expected text; its only item is `answer: answer\.0`$"),
        ({"problem": "1+1=", "answer": {"a": "2"}}, {"answer": "answer.b"}, r"no answer in column 'answer\.b'"),
    ],
)  # fmt: skip
def test_a_value_with_parts_is_refused_with_the_path_to_name(tmp_path, row, settings, message):
    path = write(tmp_path / "bad.jsonl", [row])
    with pytest.raises(TaskError, match=rf"bad\.jsonl:1: .*{message}"):
        make_task(Math(path=str(path), **settings), CharacterTokenizer())


def test_folders_of_something_else_and_splits_of_a_file_are_refused(tmp_path, file):
    (tmp_path / "x").write_text("x")
    with pytest.raises(ValueError, match="save_to_disk"):
        list(read_task_rows(tmp_path, None))
    with pytest.raises(ValueError, match="split 'test' has no effect on a file"):
        list(read_task_rows(write(file), "test"))


def test_symbols_cannot_write_a_question_in_words(file):
    with pytest.raises(ValueError, match=r"set `model\.tokenizer: characters` for arbitrary text"):
        make_task(Math(path=str(write(file))), SymbolTokenizer())


def resolved(path, **settings):
    return ResolvedRecipe.model_validate({"tasks": [{"type": "math", "path": str(path), **settings}]})


@pytest.mark.parametrize("kind", ["tasks", "downstream"])
def test_every_path_is_left_out_of_the_identity_and_every_hash_is_in_it(tmp_path, file, kind):
    def identity(**settings):
        task = {"type": "math", **settings}
        data = {"tasks": [task]} if kind == "tasks" else {"evaluation": {"downstream": [task]}}
        return ResolvedRecipe.model_validate(data).identity(0)

    sums, other = str(write(file)), str(write(tmp_path / "other.jsonl", ROWS[:3]))
    moved = str(write(tmp_path / "moved.jsonl"))
    assert identity(path=sums) == identity(path=moved) != identity(path=other)
    if kind == "tasks":
        assert identity(path=other, validation_path=sums) == identity(path=other, validation_path=moved)
        assert identity(path=other, validation_path=sums) != identity(path=other, validation_path=other)


def test_a_resolved_recipe_is_read_again_without_the_file(file):
    recipe = resolved(write(file))
    stored = recipe.model_dump_json()
    file.unlink()
    assert ResolvedRecipe.model_validate_json(stored) == recipe
    with pytest.raises(ValueError, match="the file that the run was planned with is missing"):
        make_task(recipe.tasks[0], CharacterTokenizer())


def test_a_file_edited_since_the_run_was_planned_is_refused(file):
    recipe = resolved(write(file))
    write(file, ROWS[1:])
    with pytest.raises(ValueError, match=r"sums\.jsonl has changed since the run was planned"):
        make_task(recipe.tasks[0], CharacterTokenizer())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": "nowhere.jsonl"}, r"no file or folder .*nowhere\.jsonl"),
        ({"validation": 0.2, "validation_path": "held.jsonl"}, "validation has no effect with validation_path"),
        ({"validation_split": "test"}, "validation_split has no effect without validation_path"),
        ({"template": "no place"}, "a template must contain {question}"),
        ({"name": "all"}, "the name 'all' is reserved for the mean over all tasks"),
        ({"weight": 2.0}, "weight has no effect on the only task"),
    ],
)
def test_settings_without_effect_are_refused(file, monkeypatch, settings, message):
    write(file)
    monkeypatch.chdir(file.parent)
    write(file.parent / "held.jsonl")
    with pytest.raises(ValidationError, match=message):
        resolved(**{"path": file, **settings})


def test_two_tasks_need_two_names_and_weights_for_all_or_none(file):
    one = {"type": "math", "path": str(write(file))}

    def tasks(*several):
        return ResolvedRecipe.model_validate({"tasks": several})

    with pytest.raises(ValidationError, match="two tasks are called 'math'"):
        tasks(one, one)
    with pytest.raises(ValidationError, match="'k_smallest' has no weight but others do"):
        tasks(one | {"weight": 2.0}, {"type": "k_smallest"})
    assert [task.title for task in tasks(one, one | {"name": "again"}).tasks] == ["math", "again"]


def test_demonstrations_are_the_written_solutions_of_training_prompts_and_are_right(file):
    task, rng = task_in(file), np.random.default_rng(0)
    train = set(task.train)
    for _ in range(20):
        prompt, response = task.demonstrate(rng, noise=0.0)
        a, b = CharacterTokenizer().decode(prompt.tokens).split("=")[0].split("+")
        assert prompt in train
        assert (
            CharacterTokenizer().decode(response)
            == f"{a} and {b} are {prompt.answer}</think>\\boxed{{{prompt.answer}}}"
        )
        assert task.judge(prompt, list(response)).outcome == "right"


@pytest.mark.parametrize(
    ("solution", "thinking", "at_once"),
    [
        ("<think>\n1 and 1\n</think>\n\n\\boxed{2}.", "1 and 1</think>{}\n\n{}", "1 and 1\n\n{}\n\n{}"),
        ("1 and 1\n</think>", "1 and 1</think>{}", "1 and 1\n\n{}"),
        ("<think><think>1 and 1</think></think>So 2", "1 and 1</think>So 2\n\n{}", "1 and 1\n\nSo 2\n\n{}"),
        ("<think>1 and 1", "1 and 1</think>{}", "1 and 1\n\n{}"),
    ],
)  # fmt: skip
def test_a_solution_with_marks_of_thinking_is_demonstrated_with_one_end(file, solution, thinking, at_once):
    rows = [{"question": f"{n}. 1+1=", "answer": "2", "solution": solution} for n in range(30)]
    for thinks, expected in ((True, thinking), (False, at_once)):
        task = make_task(Math(path=str(write(file, rows))), CharacterTokenizer(thinks=thinks))
        prompt, response = task.demonstrate(np.random.default_rng(0), noise=0.0)
        written = CharacterTokenizer().decode(response)
        assert written.replace("\\boxed{2}.", "{}").replace("\\boxed{2}", "{}") == expected
        assert task.judge(prompt, list(response)).outcome == "right"


def test_noise_replaces_that_share_of_the_thought_and_never_the_answer(file):
    task, rng = task_in(file), np.random.default_rng(0)
    changed = places = 0
    for _ in range(400):
        prompt, response = task.demonstrate(rng, noise=0.2)
        thought, answer = CharacterTokenizer().decode(response).split("</think>")
        assert answer == f"\\boxed{{{prompt.answer}}}"
        solution = (
            CharacterTokenizer().decode(prompt.tokens).split("=")[0].replace("+", " and ") + f" are {prompt.answer}"
        )
        places += len(solution)
        changed += sum(x != y for x, y in zip(thought, solution, strict=True))
    # Of the fifth that is redrawn, about one in six meets its own character again (four or five blanks in sixteen).
    assert 0.15 < changed / places < 0.2


def test_a_file_without_solutions_has_no_demonstrations(file):
    assert not task_in(
        file, [{"question": row["question"], "answer": row["answer"]} for row in ROWS]
    ).has_demonstrations
    assert task_in(file).has_demonstrations


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"question": "1+1=", "answer": NaN}', r"no answer in column .*; found nan; columns with a value"),
        (b'{"question": "1+1=", "answer": Infinity}', "answer is inf; expected text or a finite number"),
        (b'{"question": "1+1=", "answer": "nan"}', "answer is 'nan', the form of a missing value"),
        (b'{"question": "1+1=", "answer": "None"}', "answer is 'None', the form of a missing value"),
        (b'{"question": "1+1=", "answer": "  "}', "answer is '  '; expected text"),
        (b'{"question": "", "answer": "2"}', "question is ''; expected text"),
        (b'{"question": "1+1=", "answer": true}', "answer is True; expected text"),
        (b'{"question": "1+1=", "answer": {"value": 2}}', "answer is {'value': 2}; expected text"),
        (b'{"question": "1+1=", "answer": "2", "answer": "3"}', "the name 'answer' occurs twice"),
        (b'{"question": "1+1=", "answer": "\\ud800"}', "half of a surrogate pair"),
        (b'{"question": "caf\xe9", "answer": "2"}', "not UTF-8 .byte 0xe9 at position 18.; save the file as UTF-8"),
        (b'{"question": "1+1=", "answer": "2"', "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_answer_is_refused_with_its_line(tmp_path, line, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"question": "2+2=", "answer": "4"}\n' + line + b'\n{"question": "3+3=", "answer": "6"}\n')
    with pytest.raises(ValueError, match=rf"bad\.jsonl:2: .*{message}"):
        make_task(Math(path=str(path)), CharacterTokenizer())


def test_one_bad_row_does_not_hide_the_next(file):
    rows = [*ROWS, {"question": "a", "answer": None}, {"query": "b", "answer": "1"}, *[{"question": "c"}] * 20]
    with pytest.raises(TaskError, match=r"22 rows cannot be used.*\n.*sums\.jsonl:145: .*\n.*sums\.jsonl:146") as error:
        task_in(file, rows)
    assert [row.where for row in error.value.rows] == [f"sums.jsonl:{line}" for line in range(145, 167)]
    assert str(error.value).endswith("and 12 more")


def test_missing_numbers_of_parquet_are_refused_by_row(tmp_path):
    rows = {"question": ["1+1=", "2+2=", "3+3="], "answer": [2.0, None, float("nan")]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "a.parquet")
    with pytest.raises(TaskError) as error:
        make_task(Math(path=str(tmp_path / "a.parquet")), CharacterTokenizer())
    assert [row.where for row in error.value.rows] == ["a.parquet, row 2", "a.parquet, row 3"]


def test_numbers_are_taken_as_they_are_written(tmp_path):
    big = "9" * 5000
    path = tmp_path / "n.jsonl"
    written = ["0.10", "1e22", "9007199254740993", "1E400", big, "-0"]
    path.write_text("".join(f'{{"question": "number {i}", "answer": {one}}}\n' for i, one in enumerate(written)))
    rows = read_task_rows(path, None)
    assert [row.text("answer", None, ("answer",)) for row in rows if isinstance(row, TaskRow)] == [*written[:-1], "0"]


def test_numbers_of_parquet_are_exact_or_refused(tmp_path):
    path = tmp_path / "n.parquet"
    columns = {
        "int64": pyarrow.array([2**62 + 1], pyarrow.int64()),
        "float32": pyarrow.array([0.1], pyarrow.float32()),
        "double": pyarrow.array([0.1], pyarrow.float64()),
        "large": pyarrow.array([2.0**53], pyarrow.float64()),
    }
    parquet.write_table(pyarrow.table(columns), path)
    (row,) = read_task_rows(path, None)
    assert isinstance(row, TaskRow)
    assert [row.text("answer", name, ()) for name in ("int64", "float32", "double")] == [f"{2**62 + 1}", "0.1", "0.1"]
    with pytest.raises(ValueError, match=r"n\.parquet, row 1: answer is 9007199254740992\.0; .* may have been rounded"):
        row.text("answer", "large", ())


def test_line_ends_and_byte_order_marks_change_nothing(file, tmp_path):
    plain = task_in(file)
    path = tmp_path / "windows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert make_both(make_task(Math(path=str(path)), CharacterTokenizer())) == make_both(plain)


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_a_parquet_file_that_is_cut_is_named(tmp_path, share):
    path = tmp_path / "cut.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"cut\.parquet: not a readable Parquet file"):
        make_task(Math(path=str(path)), CharacterTokenizer())
