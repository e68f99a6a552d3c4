"""Compares a run's forecast peak memory with this machine."""

from collections.abc import Iterator
from pathlib import Path

import psutil

from scalerl.checks.finding import Finding, Severity
from scalerl.checks.noise import num_samples
from scalerl.checks.subject import Subject
from scalerl.memory.forecast import MIB, MemoryForecast, ProcessMemory, PromptLengths, peak_memory

GIB = 2**30
MOST_PARTS = 4
"""Maximum number of parts of a process that are named; the rest are added up."""
CGROUP = Path("/sys/fs/cgroup")


def check_memory(subject: Subject) -> Iterator[Finding]:
    """Yields a line for each kind of process, one for agents, and one for a run on this machine alone."""
    if not any(prompt for made in subject.tasks for prompt in made.prompts()):
        return
    try:
        forecast = peak_memory(subject.recipe, prompt_lengths(subject))
    except (ValueError, KeyError, OSError) as error:
        yield Finding(part="memory", check="forecast", level="warning", found=f"no forecast for this model: {error}")
        return
    for process in forecast.processes:
        yield Finding(part="memory", check=process.name, level="ok", found=_of_process(process))
    if forecast.agent:
        found = f"on each additional node, if a run has several: {_of_process(forecast.agent)}"
        yield Finding(part="memory", check=forecast.agent.name, level="ok", found=found)
    yield against_machine(forecast, memory_limit(), memory_available())


def prompt_lengths(subject: Subject) -> PromptLengths:
    """Properties of the tasks that determine memory."""
    trained = [len(prompt.tokens) for made in subject.tasks if not made.is_downstream for prompt in made.prompts()]
    measured = [len(prompt.tokens) for made in subject.tasks for prompt in made.prompts()]
    held_out = [
        (made.is_downstream, len(made.task.validation) * num_samples(subject, made))
        for made in subject.tasks
        if made.task is not None
    ]
    of_mix = sum(samples for is_downstream, samples in held_out if not is_downstream)
    largest = max([of_mix, *(samples for is_downstream, samples in held_out if is_downstream)])
    of_turns = subject.recipe.most_before_turn
    return PromptLengths(trained=max([*trained, of_turns]), measured=max([*measured, of_turns]), most_samples=largest)


def against_machine(forecast: MemoryForecast, limit: int, available: int) -> Finding:
    """Compare the total with the machine's or the job's limit, and with free memory."""
    total = forecast.total
    level: Severity = "error" if total > limit else "warning" if total > available else "ok"
    found = f"{size_text(total)} at the peak of a run; this machine has {size_text(limit)}, of which "
    found += f"{size_text(available)} is free"
    remedy = "use a smaller optimiser.micro_batch_tokens, fewer slots or a smaller model, or a machine with more memory"
    return Finding(part="memory", check="total", level=level, found=found, remedy="" if level == "ok" else remedy)


def memory_limit() -> int:
    """Bytes that processes here may use: the machine's memory, or a cgroup's lower limit."""
    limits = (_number(path) for path in _limit_files())
    return min([psutil.virtual_memory().total, *(one for one in limits if one is not None)])


def memory_available() -> int:
    """Free memory in bytes."""
    return psutil.virtual_memory().available


def size_text(number: int) -> str:
    """Size as text, such as `310 MiB` or `4.2 GiB`."""
    return f"{number / GIB:.1f} GiB" if number >= GIB else f"{number / MIB:.0f} MiB"


def _of_process(process: ProcessMemory) -> str:
    parts = sorted(process.parts.items(), key=lambda part: -part[1])
    named = [f"{name} {size_text(number)}" for name, number in parts[:MOST_PARTS]]
    if rest := sum(number for _, number in parts[MOST_PARTS:]):
        named.append(f"other parts {size_text(rest)}")
    each = f"{process.count:,} processes of " if process.count > 1 else ""
    return f"{each}{size_text(process.total)}: {', '.join(named)}"


def _limit_files() -> Iterator[Path]:
    """Files that may limit this process: those of its cgroup and its ancestors, in both versions of cgroups."""
    yield CGROUP / "memory" / "memory.limit_in_bytes"
    try:
        own = next(
            line.split("::", 1)[1] for line in Path("/proc/self/cgroup").read_text().splitlines() if "::" in line
        )
    except (OSError, StopIteration):
        return
    here = CGROUP / own.strip("/")
    yield from (folder / "memory.max" for folder in (here, *here.parents) if folder.is_relative_to(CGROUP))


def _number(path: Path) -> int | None:
    """Number of bytes in such a file; None for `max` or a missing file."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
