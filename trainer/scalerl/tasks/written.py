"""Source, question and right answer of a prompt."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Written:
    """Written form of a prompt: `Written(where="gsm8k.jsonl:3", text="2+2?\\n\\nPut ...", answer="\\\\boxed{4}")`."""

    where: str
    """File and line; task and prompt if the task generates its prompts."""
    text: str
    """Question put to the policy, before a chat template."""
    answer: str | None
    """Answer that its verifier should judge right after the end of thinking; None if none is written."""
    thought: str | None = None
    """Written solution that the warm start demonstrates before the answer; None if the task has none."""
