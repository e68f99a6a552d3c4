"""Checks that text comes back unchanged from the tokenizer, and that its chat template has no oddities."""

from collections.abc import Iterator

from scalerl.checks.finding import Fault, Finding, of_rows
from scalerl.checks.subject import MadeTask, Subject
from scalerl.quantities import counted
from scalerl.tasks import Task
from scalerl.tokens import Tokenizer

DOUBT = "fix chat_template.jinja, or chat_template in tokenizer_config.json, unless the model was trained with it"


def check_tokenizer(subject: Subject) -> Iterator[Finding]:
    """Yields a line for the tokenizer, one for each oddity of its template, and one for each task."""
    tokenizer = subject.tokenizer
    if isinstance(tokenizer, str):
        remedy = "use a folder whose tokenizer transformers can load"
        yield Finding(part="tokenizer", check="model", level="error", found=tokenizer, remedy=remedy)
        return
    ends = ", ".join(map(str, tokenizer.eos_ids))
    mark = f"`</think>` is {counted(len(tokenizer.end_think), 'token')}"
    found = f"{tokenizer.size:,} ids; {mark if tokenizer.reader.thinks else 'no thinking'}; sequences end with {ends}"
    yield Finding(part="tokenizer", check="model", level="ok", found=found)
    for doubt in tokenizer.doubts:
        yield Finding(part="tokenizer", check="chat template", level="warning", found=doubt, remedy=DOUBT)
    for made in subject.tasks:
        if made.task is not None:
            yield _of_task(made, made.task, tokenizer)


def _of_task(made: MadeTask, task: Task, tokenizer: Tokenizer) -> Finding:
    faults: list[Fault] = []
    prompts = list(made.prompts())
    for prompt in prompts:
        written = task.written(prompt)
        for what, text in (("prompt", written.text), ("answer", written.answer or "")):
            if (back := tokenizer.decode(tokenizer.encode(text))) != text:
                faults.append(Fault(where=written.where, what=f"the {what} reads {_differs(text, back)}"))
    of_all = f"{counted(len(prompts), 'prompt')} and their answers come back"
    found = f"{counted(len(faults), 'text')} of {of_all} changed" if faults else f"{of_all} unchanged"
    remedy = "the policy reads and writes different text from the file; remove what the tokenizer cannot represent"
    return of_rows(
        "tokenizer", made.name, found, faults, remedy, level="error" if len(faults) > len(prompts) else "warning"
    )


def _differs(text: str, back: str) -> str:
    """First difference of two texts: `'caf\ufffd' instead of 'café'`."""
    start = next((i for i, (one, other) in enumerate(zip(text, back, strict=False)) if one != other), None)
    start = max(0, (min(len(text), len(back)) if start is None else start) - 10)
    return f"{back[start : start + 30]!r} instead of {text[start : start + 30]!r}"
