"""What is written of a prompt beside its tokens: where it stands, what it asks, and a right answer."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Written:
    """`Written(where="gsm8k.jsonl:3", text="2+2?\\n\\nPut ...", answer="\\\\boxed{4}")`."""

    where: str
    """File and line; the task and the prompt itself if the task makes its prompts."""
    text: str
    """The question as the policy is asked, before a chat template."""
    answer: str | None
    """What its own verifier should take as right after the end of thinking; None if no such answer is written."""
    thought: str | None = None
    """A written solution, which the warm start demonstrates before the answer; None where the task has none."""
