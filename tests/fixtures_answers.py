"""Results with other answers than those that were found."""

from dataclasses import replace
from typing import Any

from ablations.answers.questions import BY_NAME
from ablations.findings.results import Results


def with_line(
    results: Results, name: str, *, answers: dict[str, dict[str, Any]] | None = None, **changes: Any
) -> Results:
    """The results with changes in one line of the comparison, and in its answers by question."""
    assert results.comparison is not None
    line = results.compared(name)
    assert line is not None
    changed = {
        question: replace(line.answers[question], **of_answer) for question, of_answer in (answers or {}).items()
    }
    line = replace(line, answers={question: (line.answers | changed)[question] for question in BY_NAME}, **changes)
    variants = tuple(line if one.name == name else one for one in results.comparison.variants)
    return replace(results, comparison=replace(results.comparison, variants=variants))


def asymptote(line: Any, **changes: Any) -> dict[str, Any]:
    """Changes of a line that give it another asymptote."""
    return {"asymptote": replace(line.asymptote, **changes)}


def renamed(results: Results, old: str, new: str) -> Results:
    """The results with another name for one variant, in plan, runs and comparison."""

    def called(one: Any) -> Any:
        return replace(one, name=new) if one.name == old else one

    variants = [
        replace(one, name=new, runs=tuple(replace(run, variant=new) for run in one.runs)) if one.name == old else one
        for one in results.variants
    ]
    comparison = results.comparison
    return replace(
        results,
        plan=replace(results.plan, variants=tuple(map(called, results.plan.variants))),
        variants=tuple(variants),
        comparison=comparison and replace(comparison, variants=tuple(map(called, comparison.variants))),
    )
