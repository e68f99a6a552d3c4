"""Whether programs that the policy writes can be run here."""

from collections.abc import Iterator

from scalerl.checks.finding import Checked
from scalerl.checks.subject import Subject
from scalerl.recipe import Code
from scalerl.sandbox import Sandbox, SandboxUnavailable


def check_sandbox(subject: Subject) -> Iterator[Checked]:
    """One line; none for a recipe without code tasks."""
    if not any(isinstance(one, Code) for one in (*subject.recipe.tasks, *subject.recipe.evaluation.downstream)):
        return
    try:
        isolation = Sandbox().isolation
    except SandboxUnavailable as error:
        reason, _, remedy = str(error).rpartition("\n")
        yield Checked(part="sandbox", name="isolation", level="refused", found=reason, remedy=remedy)
        return
    yield Checked(part="sandbox", name="isolation", level="ok", found=f"programs run here, isolated by {isolation}")
