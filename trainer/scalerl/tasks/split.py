"""Split of training and held-out prompts by the hash of their ids."""

import hashlib
from collections.abc import Iterable, Mapping

from scalerl.rollout import Prompt


def position(prompt_id: str) -> float:
    """Position of a prompt in [0, 1) by the hash of its id; positions below a share are held out."""
    return int.from_bytes(hashlib.sha256(prompt_id.encode()).digest()[:6]) / 2**48


def held_out(prompt_id: str) -> bool:
    """True if a synthetic prompt is in the validation split: one in eight, by the residue of its hash."""
    return hashlib.sha256(prompt_id.encode()).digest()[0] % 8 == 0


def draw_split(
    wanted: Mapping[str, int], candidates: Iterable[Prompt], task: str
) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
    """The first distinct training and validation prompts, as many as wanted; raises ValueError if too few are found."""
    found: dict[str, dict[str, Prompt]] = {split: {} for split in wanted}
    most = 100 * sum(wanted.values())
    for attempt, prompt in enumerate(candidates, start=1):
        split = "validation" if held_out(prompt.id) else "train"
        if prompt.id not in found[split] and len(found[split]) < wanted[split]:
            found[split][prompt.id] = prompt
        if all(len(found[split]) == wanted[split] for split in wanted):
            break
        if attempt > most:
            there = {split: len(prompts) for split, prompts in found.items()}
            raise ValueError(
                f"task {task!r}: too few distinct prompts for {dict(wanted)}: {attempt} draws found {there}; ask "
                "for fewer, or allow longer or more varied prompts"
            )
    return tuple(found["train"].values()), tuple(found["validation"].values())
