"""Columns of Arrow's JSON type hold the values that they spell, in files that the libraries themselves write."""

import json
from typing import Any

import datasets
import pyarrow
import pytest
from datasets import Features, Json, List, Value
from pyarrow import parquet

from scalerl.recipe import Code, Math, MultipleChoice
from scalerl.tasks import make_task
from scalerl.tasks.files import TaskRow, read_task_rows
from scalerl.tasks.left_out import LeftOut
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer(thinks=False)
GOLDS: list[Any] = [12, "x+1", "\\frac{1}{2}", 0.5, "(1, 2)", "\\text{no}", "[-2,7]", "a \\cdot b", -3, "2\\sqrt{3}"]
ROWS = [{"question": f"Question {number} of ten?", "answer": gold} for number, gold in enumerate(GOLDS)]


def mixed(tmp_path, rows=ROWS):
    """The data set that `datasets` makes of JSON lines."""
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = datasets.load_dataset("json", data_files=str(lines), split="train", cache_dir=str(tmp_path / "cache"))
    assert isinstance(found, datasets.Dataset)
    return lines, found


def values_in(path):
    """Values of the rows of a file."""
    return [row.values for row in read_task_rows(path, None) if isinstance(row, TaskRow)]


def written(tmp_path, array, **options):
    """Values of a column `answer` in a Parquet file."""
    field = pyarrow.field("answer", array.type, metadata=options.pop("field", None))
    schema = pyarrow.schema([field], metadata=options.pop("table", None))
    parquet.write_table(pyarrow.Table.from_arrays([array], schema=schema), tmp_path / "a.parquet", **options)
    return [values["answer"] for values in values_in(tmp_path / "a.parquet")]


def of_json(texts, storage=None):
    return pyarrow.ExtensionArray.from_storage(
        pyarrow.json_(storage or pyarrow.string()), pyarrow.array(texts, storage or pyarrow.string())
    )


def test_answers_of_several_types_are_right_in_every_kind_of_file(tmp_path):
    lines, made = mixed(tmp_path)
    assert made.features["answer"] == Json()
    made.to_parquet(tmp_path / "rows.parquet")
    made.save_to_disk(tmp_path / "folder")
    golds = []
    for name in (lines.name, "rows.parquet", "folder"):
        task = make_task(Math(path=str(tmp_path / name), validation=0.5), TOKENIZER)
        prompts = (*task.train, *task.validation)
        golds.append({prompt.id: prompt.answer for prompt in prompts})
        for prompt in prompts:
            answer = f"\\boxed{{{GOLDS[int(TOKENIZER.decode(prompt.tokens).split()[1])]}}}"
            assert task.judge(prompt, [*TOKENIZER.encode(answer), *TOKENIZER.eos_ids[:1]]).outcome == "right", answer
    assert golds[0] == golds[1] == golds[2]
    assert len(golds[0]) == len(GOLDS)


@pytest.mark.parametrize("form", ["parquet", "folder"])
def test_json_inside_of_structs_and_lists_is_read(tmp_path, form):
    features = Features(
        {
            "question": Value("string"),
            "choices": List(Json()),
            "info": {"answerKey": Json(), "scores": List(Value("float32")), "other": Value("string")},
        }
    )
    info = {"answerKey": "B", "scores": [0.1], "other": '"as it is"'}
    rows = [
        {"question": f"Which of {i}?", "choices": ["red", i, {"a": 1}], "info": info | {"other": None if i else '"x"'}}
        for i in range(12)
    ]
    made = datasets.Dataset.from_list(rows, features=features)
    path = tmp_path / ("a.parquet" if form == "parquet" else "folder")
    made.to_parquet(path) if form == "parquet" else made.save_to_disk(path)
    first, *_, last = values_in(path)
    assert first["choices"] == ["red", 0, {"a": 1}]
    assert first["info"] == {"answerKey": "B", "scores": [0.1], "other": '"x"'}
    assert last["info"]["other"] is None
    plain = [row | {"choices": row["choices"][:2], "question": f"{row['question']} "} for row in rows]
    two = datasets.Dataset.from_list(plain, features=features)
    two.to_parquet(tmp_path / "two.parquet")
    settings = MultipleChoice(path=str(tmp_path / "two.parquet"), answer="info.answerKey", validation=0.5)
    task = make_task(settings, TOKENIZER)
    assert {prompt.answer for prompt in (*task.train, *task.validation)} == {("B", ("red", str(i))) for i in range(12)}


def test_tests_of_programs_that_are_json_are_read(tmp_path):
    tests = [{"call": "add", "args": [2, 2], "expected": 4}, {"call": "add", "args": ["a", "b"], "expected": "ab"}]
    rows = [{"question": f"Add {i}.", "tests": json.dumps(tests)} for i in range(12)]
    made = datasets.Dataset.from_list(rows, features=Features({"question": Value("string"), "tests": Json()}))
    made.to_parquet(tmp_path / "a.parquet")
    task = make_task(Code(path=str(tmp_path / "a.parquet"), validation=0.5), TOKENIZER)
    prompt = task.train[0]
    for program, outcome in (("def add(a, b): return a + b", "right"), ("def add(a, b): return 4", "wrong")):
        answer = TOKENIZER.encode(f"```python\n{program}\n```")
        assert task.judge(prompt, [*answer, *TOKENIZER.eos_ids[:1]]).outcome == outcome


TEXTS = ['"two"', "1", "0.10", "null", None, '{"a": "b"}', "[1, 2]", "123456789012345678901234567890", "1e400"]
VALUES = ["two", 1, 0.1, None, None, {"a": "b"}, [1, 2], 123456789012345678901234567890, float("inf")]
HUGGING_FACE = {"info": {"features": {"answer": {"decode": True, "_type": "Json"}}}}


@pytest.mark.parametrize("storage", ["string", "large_string", "string_view"])
def test_every_storage_of_arrows_json_type_is_read(tmp_path, storage):
    assert written(tmp_path, of_json(TEXTS, getattr(pyarrow, storage)())) == VALUES


def test_parquets_own_json_type_is_read_as_other_writers_leave_it(tmp_path):
    assert written(tmp_path, of_json(TEXTS), store_schema=False) == VALUES
    assert parquet.ParquetFile(tmp_path / "a.parquet").schema.column(0).logical_type.type == "JSON"


def test_json_is_read_where_only_metadata_name_the_type(tmp_path):
    text = pyarrow.array(TEXTS)
    assert written(tmp_path, text) == TEXTS
    assert written(tmp_path, text, field={"ARROW:extension:name": "arrow.json"}) == VALUES
    assert written(tmp_path, text, table={"huggingface": json.dumps(HUGGING_FACE)}) == VALUES


def test_a_feature_that_is_not_to_be_decoded_stays_text(tmp_path):
    rows = {"answer": ['"two"']}
    datasets.Dataset.from_dict(rows, features=Features({"answer": Json(decode=False)})).to_parquet(
        tmp_path / "a.parquet"
    )
    assert values_in(tmp_path / "a.parquet") == [{"answer": '"two"'}]


def test_json_in_maps_is_read(tmp_path):
    kind = pyarrow.map_(pyarrow.string(), pyarrow.json_())
    pairs = pyarrow.array([[("a", '"b"')], None], pyarrow.map_(pyarrow.string(), pyarrow.string())).cast(kind)
    assert written(tmp_path, pairs) == [[("a", "b")], None]


def test_numbers_and_intervals_of_json_are_taken_as_they_are_written(tmp_path):
    texts = ["0.10", "1e22", "9007199254740993.0", "[-2, 7]", "[[1, 2], [3, 4]]", "0.5", "0", "-0.5e-3"]
    written(tmp_path, of_json(texts))
    rows = [row for row in read_task_rows(tmp_path / "a.parquet", None) if isinstance(row, TaskRow)]
    assert [row.text("answer", None, ("answer",)) for row in rows] == texts


def test_texts_that_only_datasets_takes_for_numbers_stay_texts(tmp_path):
    answers = ["none", 7, "007", "1.", "-.5", "00", "0.", "3e", "01.50", "12345678901234567890123"]
    lines, made = mixed(tmp_path, [{"answer": one} for one in answers])
    made.to_parquet(tmp_path / "rows.parquet")
    both = [[*read_task_rows(path, None)] for path in (lines, tmp_path / "rows.parquet")]
    texts = [[row.text("answer", None, ("answer",)) for row in rows if isinstance(row, TaskRow)] for rows in both]
    assert texts[0] == texts[1] == [str(one) for one in answers]


@pytest.mark.parametrize("text", ["true", "[]", '["a"]', '[{"role": "user", "content": "a"}]', "[true]", '{"a": 1}'])
def test_json_that_is_no_text_is_refused_as_in_json_lines(tmp_path, text):
    written(tmp_path, of_json([text]))
    (row,) = read_task_rows(tmp_path / "a.parquet", None)
    assert isinstance(row, TaskRow)
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: answer is .*expected text"):
        row.text("answer", None, ("answer",))


@pytest.mark.parametrize(
    ("text", "fault"),
    [("two", "not JSON"), ("", "not JSON"), ('{"a": 1, "a": 2}', "occurs twice"), ("[" * 200_000, "nested too deeply")],
)
def test_a_cell_that_is_no_json_makes_its_row_unreadable_and_no_other(tmp_path, text, fault):
    written(tmp_path, of_json(["1", text, "3"]))
    one, bad, three = read_task_rows(tmp_path / "a.parquet", None)
    assert isinstance(one, TaskRow)
    assert isinstance(bad, LeftOut)
    assert isinstance(three, TaskRow)
    assert (bad.where, bad.reason) == ("a.parquet, row 2", "unreadable")
    assert bad.detail.startswith("column 'answer' is of Arrow's JSON type, but ")
    assert fault in bad.detail


def test_numbers_of_32_bits_in_a_folder_keep_their_shortest_text(tmp_path):
    features = Features({"answer": Value("float32")})
    datasets.Dataset.from_dict({"answer": [0.1, None]}, features=features).save_to_disk(tmp_path / "folder")
    one, none = read_task_rows(tmp_path / "folder", None)
    assert isinstance(one, TaskRow)
    assert isinstance(none, TaskRow)
    assert one.text("answer", None, ("answer",)) == "0.1"
    assert none.values == {"answer": None}
