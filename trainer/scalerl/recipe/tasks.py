"""Tasks to train on and measure: synthetic tasks, tasks in files, and files that are only measured.

    tasks:
      - {type: math, form: gsm8k, path: train.jsonl, weight: 3}
      - {type: code, form: mbpp, path: mbpp.jsonl, weight: 1}

A relative path starts at the folder where the command is run. The resolved recipe has the absolute path beside the hash
of the content. Only the hash is part of a run's identity: moving a file keeps its runs, editing it makes new ones.
"""

import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from scalerl.frozen import Count, Frozen, Unit
from scalerl.quantities import counted
from scalerl.recipe.episodes import Episodes
from scalerl.recipe.file_hash import content_sha256
from scalerl.recipe.one_task import ColumnName, OneTask, Sha256, Template
from scalerl.recipe.own import CustomTask
from scalerl.recipe.reasoning_gym import ReasoningGym
from scalerl.recipe.template import shows
from scalerl.sandbox.limits import Limits


class KSmallest(OneTask):
    """Write the k smallest symbols of a list in order, after a draft (`scalerl.tasks.k_smallest`)."""

    type: Literal["k_smallest"] = "k_smallest"
    symbols: Annotated[int, Field(ge=8, le=36), Unit("symbols")] = 36
    """Size of the alphabet that the lists use."""
    min_length: Annotated[int, Field(ge=2, le=10_000), Unit("symbols")] = 5
    """Shortest list."""
    max_length: Annotated[int, Field(ge=2, le=10_000), Unit("symbols")] = 12
    """Longest list; also the largest difficulty."""
    train_prompts: Annotated[int, Field(ge=1, le=100_000_000), Unit("prompts")] = 4096
    """Distinct training prompts."""
    validation_prompts: Annotated[int, Field(ge=1, le=10_000_000), Unit("prompts")] = 256
    """Distinct held-out prompts; none is a training prompt."""

    @model_validator(mode="after")
    def _lengths_ordered(self) -> Self:
        if not self.min_length <= self.max_length < self.symbols:
            raise ValueError(
                f"lengths must satisfy min_length <= max_length < symbols, "
                f"found {self.min_length}, {self.max_length}, {self.symbols}"
            )
        most = sum(n * math.perm(self.symbols, n) for n in range(self.min_length, self.max_length + 1))
        # One prompt in eight is held out; drawing the last few distinct ones would take for ever.
        if self.train_prompts > 0.9 * most * 7 / 8 or self.validation_prompts > 0.9 * most / 8:
            raise ValueError(
                f"symbols and lengths give too few distinct prompts: {most} for {self.train_prompts} to train on and "
                f"{self.validation_prompts} held out; raise symbols or max_length"
            )
        return self


class Modular(OneTask):
    """Write a short program that maps five numbers to five others, modulo a prime (`scalerl.tasks.modular`)."""

    type: Literal["modular"] = "modular"
    modulus: Literal[17, 19, 23, 29, 31] = 17
    """A prime of at least 17, which gives enough distinct prompts for new held-out ones; each number below it is one
    symbol."""
    min_operations: Annotated[int, Field(ge=1, le=3), Unit("operations")] = 1
    """Operations of the shortest program used for a prompt."""
    max_operations: Annotated[int, Field(ge=1, le=3), Unit("operations")] = 3
    """Operations of the longest program; also the largest difficulty."""
    train_prompts: Annotated[int, Field(ge=1, le=100_000_000), Unit("prompts")] = 4096
    """Distinct training prompts."""
    validation_prompts: Annotated[int, Field(ge=1, le=10_000_000), Unit("prompts")] = 256
    """Distinct held-out prompts; none is a training prompt."""

    @model_validator(mode="after")
    def _operations_ordered(self) -> Self:
        if self.min_operations > self.max_operations:
            raise ValueError(f"min_operations {self.min_operations} must not be above max_operations")
        return self


class TaskFile(OneTask):
    """Problems in a file: JSON lines (`.jsonl`, `.jsonl.gz`), a JSON list (`.json`), Parquet, or a folder saved by
    Hugging Face `datasets` with `save_to_disk`."""

    path: Annotated[str, Field(min_length=1)]
    """File or folder. Not part of a run's identity."""
    path_sha256: Sha256 = None
    """Hash of the content, filled in when the recipe is resolved."""
    split: ColumnName = None
    """Split to use, if the folder has several."""
    validation: Annotated[float, Field(gt=0, lt=1), Unit("share of problems")] | None = None
    """Share of the problems held out, chosen by the hash of their ids; null holds out a tenth, or none if
    `validation_path` is set."""
    validation_path: Annotated[str, Field(min_length=1)] | None = None
    """File or folder of held-out problems; problems that are also in `path` are not trained on."""
    validation_path_sha256: Sha256 = None
    """Hash of the content, filled in when the recipe is resolved."""
    validation_split: ColumnName = None
    """Split to use, if the folder of the held-out problems has several."""
    id: ColumnName = None
    """Column that identifies each problem; null uses the hash of the question. The split depends only on it."""
    difficulty: ColumnName = None
    """Column with the difficulty, a number; null sets all difficulties to 0."""
    max_prompt_tokens: Annotated[Count, Unit("tokens")] = 2048
    """Longest prompt; problems with a longer one are left out and counted."""

    @field_validator("path", "validation_path")
    @classmethod
    def _absolute(cls, path: str | None) -> str | None:
        return None if path is None else str(Path(path).expanduser().absolute())

    @model_validator(mode="after")
    def _hashes(self) -> Self:
        for field in ("path", "validation_path"):
            path = getattr(self, field)
            if path is not None and getattr(self, f"{field}_sha256") is None:
                # Frozen for its users; here it is still being made.
                object.__setattr__(self, f"{field}_sha256", content_sha256(Path(path), field))
        return self

    @model_validator(mode="after")
    def _validation_has_effect(self) -> Self:
        if self.validation_path is None:
            for field in ("validation_path_sha256", "validation_split"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{field} has no effect without validation_path; set both, or remove it")
        elif self.validation is not None:
            raise ValueError("validation has no effect with validation_path; remove one of them")
        return self

    @property
    def held_out_share(self) -> float:
        """Share of the problems in `path` that is held out."""
        if self.validation_path is not None:
            return 0.0
        return 0.1 if self.validation is None else self.validation


MathForm = Literal["gsm8k", "math", "math500", "aime"]
CodeForm = Literal["humaneval", "mbpp", "livecodebench"]
PYTHON_BLOCK = "Write a Python program, whole, in one ```python block."
CODE_TEMPLATES: dict[CodeForm, str] = {
    "humaneval": f"Complete this function.\n\n```python\n{{question}}\n```\n\n{PYTHON_BLOCK}",
    "mbpp": f"{{question}}\n\nThe program should pass these tests:\n\n```python\n{{tests}}\n```\n\n{PYTHON_BLOCK}",
}
"""Templates of forms with their own; only MBPP's tests name the function to write."""


def _absent_if_null(form: str | int | None) -> bool:
    # Files without a form are older than this setting: writing null would change the identity of their runs.
    return form is None


def _absent_if_true(reads_prose: bool) -> bool:
    # Younger than other settings: writing true would change the identity of all runs.
    return reads_prose


class Math(TaskFile):
    """Mathematics, as in GSM8K, MATH and AIME; math-verify compares the answers (`scalerl.verifiers`)."""

    type: Literal["math"] = "math"
    form: Annotated[MathForm | None, Field(exclude_if=_absent_if_null)] = None
    """Published data set that the file holds unchanged (`scalerl.tasks.forms`). Determines the names of columns and the
    way answers are written, unless a setting below overrides it."""
    question: ColumnName = None
    """Column of the question; null uses the first of question, problem and prompt that exists."""
    answer: ColumnName = None
    r"""Column of the answer: its last \boxed{}, else the text after its last "####", else all of it. Null uses the
    first of answer and solution that exists."""
    solution: ColumnName = None
    """Column of a written solution for demonstrations in the warm start; null uses solution if it exists, else the part
    of the answer before "####"."""
    template: Template = "{question}\n\nPut the final answer in \\boxed{}."
    """Text of the prompt; {name} is replaced by the column of that name, and {{name}} by {name}."""
    reads_prose: Annotated[bool, Field(exclude_if=_absent_if_true)] = True
    r"""Whether an answer counts if a plain sentence states it, as in "She pays 5." If false, an answer must be marked:
    by \boxed{}, by "####", between <answer> tags, by "Answer:" or "the answer is" in the last line, or stand alone."""
    time_limit_s: Annotated[float, Field(gt=0, le=60), Unit("s")] = 5.0
    """CPU seconds for one comparison; an answer that takes longer is wrong."""


class Code(TaskFile):
    """Programs that run in the sandbox and are judged by tests outside of it (`scalerl.verifiers.programs`)."""

    type: Literal["code"] = "code"
    form: Annotated[CodeForm | None, Field(exclude_if=_absent_if_null)] = None
    """Published data set that the file holds unchanged (`scalerl.tasks.forms`). Determines the names of columns, how
    tests run and what the prompt says, unless a setting below overrides it."""
    question: ColumnName = None
    """Column of the question; null uses the first of question, problem, problem_description, prompt, text and
    description that exists."""
    tests: ColumnName = None
    """Column of the tests; null uses the first of tests, test_list, test, input_output and public_tests (with
    private_tests and generated_tests) that exists. `scalerl.tasks.code_test_forms` lists its forms."""
    solution: ColumnName = None
    """Column of a program for demonstrations in the warm start; null uses the first of solution, code and
    canonical_solution that exists."""
    template: Template = f"{{question}}\n\n{PYTHON_BLOCK}"
    """Text of the prompt; {tests} is replaced by tests that are Python text, {name} by the column of that name, and
    {{name}} by {name}. The forms humaneval and mbpp have their own templates."""
    limits: Limits = Limits()
    """Limits of one program for all its tests together."""

    @model_validator(mode="before")
    @classmethod
    def _template_of_the_form(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("form") in CODE_TEMPLATES and "template" not in data:
            return {**data, "template": CODE_TEMPLATES[data["form"]]}
        return data

    @model_validator(mode="after")
    def _form_suits(self) -> Self:
        if self.form == "livecodebench" and self.tests is not None:
            raise ValueError("tests has no effect with form livecodebench, whose tests are in two columns; remove it")
        if self.form == "mbpp" and not shows(self.template, "tests"):
            raise ValueError(
                "template: only the tests of mbpp name the function to write, so a template must contain {tests}"
            )
        return self


class MultipleChoice(TaskFile):
    """Multiple choice, as in ARC and HellaSwag; answered with a letter."""

    type: Literal["choice"] = "choice"
    question: ColumnName = None
    """Column of the question; null uses the first of question, problem, prompt and ctx that exists."""
    choices: ColumnName | tuple[str, ...] = None
    """Column of the choices, a list of texts or ARC's {"text": [...], "label": [...]}, or a list of columns with one
    choice each; null uses the first of choices, options and endings that exists."""
    answer: ColumnName = None
    """Column of the right choice: its letter, label, text, or position. Null uses the first of answerKey, answer and
    label that exists. If it is one of several columns of `choices`, each row's choices are shuffled."""
    count_from: Annotated[Literal[0, 1] | None, Field(exclude_if=_absent_if_null)] = None
    """First position. Null is 0 if a row has 0, and 1 if none does and some positions equal the number of their
    choices; if the rows leave it open, the file is rejected."""
    solution: ColumnName = None
    """Column of a written thought for demonstrations in the warm start, before the letter; null uses solution if it
    exists."""
    template: Template = "{question}\n\n{choices}\n\nAnswer with the letter of the right choice."
    """Text of the prompt; {choices} is replaced by lines such as "A. Paris", {name} by the column of that name, and
    {{name}} by {name}."""

    @property
    def answer_is_a_choice(self) -> bool:
        """True if the right choice is in one of the columns of the choices."""
        return isinstance(self.choices, tuple) and self.answer in self.choices

    @model_validator(mode="after")
    def _columns_suit(self) -> Self:
        if isinstance(self.choices, tuple) and not 2 <= len({*self.choices}) == len(self.choices) <= 26:
            raise ValueError(f"choices: found {counted(len(self.choices), 'column')}; must be 2 to 26 different ones")
        if self.answer_is_a_choice and self.count_from is not None:
            raise ValueError(
                f"count_from has no effect if the column {self.answer!r} holds the right choice; remove it"
            )
        return self

    @field_validator("template")
    @classmethod
    def _shows_choices(cls, template: str) -> str:
        if not shows(template, "choices"):
            raise ValueError(f"found {template[:60]!r}; a template must contain {{choices}}")
        return template


class Qa(TaskFile):
    """Questions with short answers, as in NaturalQuestions; exact match in SQuAD's normal form."""

    type: Literal["qa"] = "qa"
    question: ColumnName = None
    """Column of the question; null uses the first of question, problem and prompt that exists."""
    answers: ColumnName = None
    """Column of the right answers: a text, a list of texts, or SQuAD's {"text": [...]}. Null uses the first of answers
    and answer that exists."""
    solution: ColumnName = None
    """Column of a written thought for demonstrations in the warm start, before the first answer; null uses solution if
    it exists."""
    template: Template = "{question}\n\nAnswer in a few words."
    """Text of the prompt; {name} is replaced by the column of that name, as in "{context}\\n\\n{question}", and
    {{name}} by {name}."""
    min_f1: Annotated[float, Field(gt=0, le=1), Unit("F1")] = 1.0
    """Minimum F1 against a right answer for an answer to count as right; 1 accepts only exact matches."""


AnyTask = Annotated[
    KSmallest | Modular | Math | Code | MultipleChoice | Qa | ReasoningGym | CustomTask | Episodes,
    Field(discriminator="type"),
]
FileSettings = Math | Code | MultipleChoice | Qa


class Measured(Frozen):
    """Schedule and metrics of a task file that is never trained on."""

    samples: Annotated[int, Field(ge=1, le=100_000), Unit("rollouts per problem")] = 16
    """Rollouts per problem."""
    every: Annotated[Count, Unit("evaluations")] = 1
    """Measure at every n-th evaluation, starting with the first."""
    k: Annotated[tuple[Count, ...], Field(min_length=1)] = (1,)
    """Values of k for pass@k, estimated without bias (arXiv 2107.03374, eq. 1)."""

    @property
    def held_out_share(self) -> float:
        """Share held out: all."""
        return 1.0

    @model_validator(mode="after")
    def _enough_samples(self) -> Self:
        if max(self.k) > self.samples:
            raise ValueError(f"pass@{max(self.k)} cannot be estimated from {self.samples} samples; raise samples")
        return self

    @model_validator(mode="after")
    def _is_not_trained_on(self) -> Self:
        for field in ("weight", "validation", "validation_path", "solution"):
            if getattr(self, field, None) is not None:
                raise ValueError(f"{field} has no effect on a file that is only measured; remove it")
        return self


class MathDownstream(Measured, Math):
    """Mathematics that is only measured, such as AIME and MATH-500."""


class CodeDownstream(Measured, Code):
    """Programs that are only measured, such as HumanEval and MBPP."""


class ChoiceDownstream(Measured, MultipleChoice):
    """Multiple choice that is only measured, such as ARC."""


class QaDownstream(Measured, Qa):
    """Questions that are only measured."""


Downstream = Annotated[MathDownstream | CodeDownstream | ChoiceDownstream | QaDownstream, Field(discriminator="type")]
