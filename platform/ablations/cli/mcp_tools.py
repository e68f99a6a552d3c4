"""The commands as tools of the Model Context Protocol.

Each tool runs its command in a separate process, so that a tool and a script get the same document and the same
errors, and nothing but the protocol reaches the server's standard output.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from ablations import __version__
from ablations.cli.background import start_in_background
from ablations.cli.exit_codes import WRONG_INPUT
from ablations.cli.mcp_arguments import tool_of
from ablations.cli.output import SCHEMA
from ablations.files.lookup import SHIPPED
from ablations.findings.campaign import campaign_names, read_campaign
from ablations.home.home import Home
from ablations.study.sweep import load_sweep
from ablations.text import four_digits
from scalerl.readable_folders import NOT_FOR_AGENTS, READ_FROM, is_readable
from scalerl.recipe import Recipe

INSTRUCTIONS = f"""\
Ablation studies of reinforcement learning for language models: a sweep file in, a verdict out.
Each tool returns the JSON of the command `platform` of its name, schema {SCHEMA}, documented in docs/formats.md.
The tools campaign_* judge changes that you make one after the other; they answer in words, the last of which say what
to do."""

CHARGED = (*Recipe.model_fields, "batch", "generation", "optimiser", "model", "adapter")
"""Blocks of settings whose work the modelled cluster charges as compute."""

SweepName = Annotated[str | None, Field(description="Sweep name or file. Default: the last sweep started.")]
SweepFile = Annotated[str, Field(description="Sweep file, for example sweeps/loo.yaml.")]
ScaleName = Annotated[str | None, Field(description="Scale to use instead of the file's.")]
SettingTexts = Annotated[Sequence[str], Field(description="path=value for every variant.")]
BudgetText = Annotated[
    str | None,
    Field(description="Compute per run: 2 in the scale's unit, 160h in GPU-hours, 2x times the budget in the file."),
]
TaskToFit = Annotated[
    str | None, Field(description="Task whose curves to fit. Default: the only one, or all of a mix.")
]

CampaignName = Annotated[str, Field(description="Name of the campaign.")]
ProposalName = Annotated[str, Field(description='Short name of the change. "best" is the best so far.')]
CodeFiles = Annotated[Sequence[str], Field(description="Files or folders of the proposal's code and settings.")]
ChangeText = Annotated[str, Field(description="What the proposal changes, for the record.")]


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The tools for one home folder; `most_compute` is the limit of the tool `sweep`, None removes that tool."""

    home: Home
    most_compute: float | None
    most_hours: float | None = None
    """Hours after which a sweep that the tool has started is asked to stop; None for no limit."""

    def server(self) -> MCPServer:
        asking = (self.list_sweeps, self.show, self.dry_run, self.design, self.status, self.compare, self.forecast)
        tools = [tool_of(one, ToolAnnotations(read_only_hint=True)) for one in asking]
        writing = (self.note, self.campaign_new, self.campaign_propose, self.campaign_decide)
        tools += [tool_of(one, ToolAnnotations(read_only_hint=False, destructive_hint=False)) for one in writing]
        if self.most_compute is not None:
            tools.append(tool_of(self.sweep, ToolAnnotations(read_only_hint=False, destructive_hint=False)))
        return MCPServer("ablations", tools=tools, version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

    def list_sweeps(self) -> CallToolResult:
        """List the sweeps of the home folder with their progress and cost."""
        return self._answer("list")

    def show(
        self,
        sweep: Annotated[
            str | None, Field(description="Sweep name or file, or a run id. Default: the last sweep started.")
        ] = None,
        variant: Annotated[str | None, Field(description="Variant whose whole recipe to show.")] = None,
    ) -> CallToolResult:
        """Show the question, variants and runs of a started sweep, or every setting of a variant or run."""
        return self._answer("show", [sweep], variant=variant)

    def dry_run(
        self, file: SweepFile, scale: ScaleName = None, set: SettingTexts = (), budget: BudgetText = None
    ) -> CallToolResult:
        """Show the runs of a sweep file and the compute left to train, without training anything."""
        options = {"scale": scale, "set": set, "budget": budget, "dry-run": True}
        return self._answer("sweep", [file], **options)

    def design(
        self,
        file: Annotated[str, Field(description="Sweep file, or a CSV file of curves.")],
        detect: Annotated[
            float | None, Field(description="Find the cheapest design for this difference; for compute a ratio.")
        ] = None,
        question: Annotated[
            Literal["level", "ceiling", "compute"], Field(description="Quantity that detect refers to.")
        ] = "level",
        scale: ScaleName = None,
        set: SettingTexts = (),
        budget: BudgetText = None,
    ) -> CallToolResult:
        """Show the smallest differences that a study could detect with 80 % power, by design, before it is run."""
        options = {"detect": detect, "question": question, "scale": scale, "set": set, "budget": budget}
        return self._answer("design", [file], **options)

    def status(self, sweep: SweepName = None) -> CallToolResult:
        """Show the state of each run of a sweep, when it will end, and why runs failed."""
        return self._answer("status", [sweep])

    def compare(
        self,
        sweeps: Annotated[
            Sequence[str],
            Field(description="Sweep names or files, or one CSV file of curves. Default: the last sweep started."),
        ] = (),
        reference: Annotated[
            str | None, Field(description="Variant with which to compare. Default: the sweep's reference.")
        ] = None,
        task: TaskToFit = None,
        paper: Annotated[bool, Field(description="Compare like arXiv 2510.13786.")] = False,
    ) -> CallToolResult:
        """Compare the variants of sweeps with a reference."""
        return self._answer("paper" if paper else "compare", sweeps, reference=reference, task=task)

    def forecast(
        self,
        sweep: SweepName = None,
        budget: Annotated[
            Sequence[str], Field(description="Compute per run, as in the tool sweep. Default: 1x, 2x and 10x.")
        ] = (),
        score: Annotated[
            float | None, Field(description="Forecast the compute needed to reach this pass rate.")
        ] = None,
        task: TaskToFit = None,
    ) -> CallToolResult:
        """Forecast every variant at larger budgets, and the likely leader."""
        return self._answer("forecast", [sweep], budget=budget, score=score, task=task)

    def note(
        self,
        about: Annotated[str, Field(description="Sweep, variant or run, such as loo, loo-loss or loo-loss-s0.")],
        text: Annotated[str | None, Field(description="Note to add. Default: return the notes.")] = None,
        tag: Annotated[Sequence[str], Field(description="Tags to add, one word each.")] = (),
        sweep: Annotated[
            str | None, Field(description="Sweep of the variant or run. Default: the last sweep started.")
        ] = None,
    ) -> CallToolResult:
        """Write a note or tags on a sweep, a variant or a run, or return those that there are. Pages and reports show
        them; they change no result."""
        return self._answer("note", [about], words=[] if text is None else [text], tag=tag, sweep=sweep)

    def campaign_new(
        self,
        campaign: CampaignName,
        proposals: Annotated[int, Field(description="How many proposals you will try at most.")] = 200,
        promise: Annotated[
            Literal["at_most_one", "fdr"],
            Field(description="At most one false keep in 95 % of campaigns, or at most a tenth of the keeps false."),
        ] = "at_most_one",
        margin: Annotated[float | None, Field(description="Smallest gain in score worth having.")] = None,
        ceiling: Annotated[float | None, Field(description="Highest possible score.")] = None,
    ) -> CallToolResult:
        """Start a campaign: changes to a recipe, tried one after the other, each kept only if it beats the best so far
        beyond luck. First record four runs of what you start from with campaign_decide."""
        options = {"proposals": proposals, "promise": promise, "margin": margin, "ceiling": ceiling}
        return self._said("campaign", [campaign], **options)

    def campaign_propose(
        self, campaign: CampaignName, proposal: ProposalName, code: CodeFiles, says: ChangeText = ""
    ) -> CallToolResult:
        """Record a proposal before it is run, by its code and settings; the answer says how many runs it needs, or that
        the same has been tried before."""
        if self.most_compute is not None and (spent := self._spent()) >= self.most_compute:
            return _result(
                f"campaigns have spent {four_digits(spent)} of compute, and this server allows {self.most_compute:g}; "
                "stop, and report the best so far",
                is_error=True,
            )
        return self._said("keep", [campaign, proposal], code=code, says=says)

    def campaign_decide(
        self,
        campaign: CampaignName,
        proposal: ProposalName,
        score: Annotated[
            Sequence[float],
            Field(description="Score of each new run, in the order in which they ran; higher is better."),
        ] = (),
        sweep: Annotated[
            str | None, Field(description="Instead of score: the sweep that trained the proposal.")
        ] = None,
        variant: Annotated[
            str | None, Field(description="With sweep: its variant. Default: the proposal's name.")
        ] = None,
        code: CodeFiles = (),
        condition: Annotated[
            Sequence[str], Field(description="name=value that all runs share, such as evaluation=held-out-2.")
        ] = (),
        withdraw: Annotated[float | None, Field(description="Take back a mistyped score of the proposal.")] = None,
    ) -> CallToolResult:
        """Record new runs of a proposal, of the start, or of "best", the best so far; the answer is keep, discard, run
        again or same as before, and its last line says what to do next. Ask as often as you like."""
        options = {"score": score, "variant": variant, "code": code, "condition": condition, "withdraw": withdraw}
        return self._said("keep", [campaign, proposal, sweep], **options)

    def _spent(self) -> float:
        """Compute of the runs of all campaigns in the home folder."""
        return sum(read_campaign(self.home, name).compute for name in campaign_names(self.home))

    def _said(self, command: str, arguments: Sequence[str | None], **options: Any) -> CallToolResult:
        """The words of a command's answer instead of its document."""
        found = self._answer(command, arguments, **options)
        return found if found.is_error else _result("\n".join(json.loads(_text(found))["says"]))

    def sweep(
        self, file: SweepFile, scale: ScaleName = None, set: SettingTexts = (), budget: BudgetText = None
    ) -> CallToolResult:
        """Start to train the missing runs of a sweep file on this machine, and return at once; the tool status shows
        the progress.

        The answer names the sweep, the process and its log file, which ends with the comparison or the error.
        """
        assert self.most_compute is not None
        planned = self.dry_run(file, scale, set, budget)
        if planned.is_error:
            return planned
        if priced := self._priced(file, set):
            return priced
        plan = json.loads(_text(planned))
        if plan["left_gpu_hours"] + (spent := self._spent()) > self.most_compute:
            besides = f", campaigns have spent {four_digits(spent)}," if spent else ","
            return _result(
                f"sweep '{plan['sweep']}': {four_digits(plan['left_gpu_hours'])} {plan['compute_name']} are left to "
                f"train{besides} and this server allows {self.most_compute:g}; choose a smaller budget, scale or "
                "study, or restart `platform mcp` with a larger --most-compute",
                is_error=True,
            )
        arguments = shell_words([file], scale=scale, set=set, budget=budget)
        started = start_in_background(self.home, plan["sweep"], arguments, most_hours=self.most_hours)
        return _result(json.dumps(started, indent=1))

    def _priced(self, file: str, settings: Sequence[str]) -> CallToolResult | None:
        """The refusal of a setting that changes what a unit of compute is worth; None if there is none.

        The limit is in that unit, so whoever may set its price sets the limit.
        """
        paths = [text.partition("=")[0].strip() for text in settings]
        if load_sweep(Path(file)).trainer is not None:
            if paths and self.most_hours is None:
                return _result(
                    f"set: {paths[0]}: the program counts its own compute, and its settings may change how; "
                    "write the settings in the sweep file, or restart `platform mcp` with --most-hours",
                    is_error=True,
                )
            return None
        for path in paths:
            if path.partition(".")[0] not in CHARGED:
                return _result(
                    f"set: {path}: this server fixes settings that change the price of compute, or cost none; "
                    f"an agent may set {', '.join(CHARGED)}. Write others in the sweep or scale file, or start the "
                    "sweep by hand",
                    is_error=True,
                )
        return None

    def _answer(
        self, command: str, arguments: Sequence[str | None] = (), *, words: Sequence[str] = (), **options: Any
    ) -> CallToolResult:
        """The document printed by a command; a tool error with the command's message if the command fails. `words`
        follow the arguments and name no file."""
        folders = readable_folders(self.home)
        named = [Path(one) for one in (*arguments, options.get("scale"), *options.get("code", ())) if one]
        for path in named:
            if (path.is_absolute() or ".." in path.parts or path.exists()) and not is_readable(path, folders):
                return _result(f"{path}: {NOT_FOR_AGENTS}: {', '.join(folders)}", is_error=True)
        line = [command, "--json", f"--home={self.home.path}", *shell_words([*arguments, *words], **options)]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ablations.cli", *line],
            env=os.environ | {READ_FROM: os.pathsep.join(folders)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            document = json.loads(done.stdout)
        except ValueError:
            return _result(f"`platform {command}` failed: {done.stderr.strip()}", is_error=True)
        if isinstance(document, dict) and "error" in document:
            return _result(document["error"]["message"], is_error=True)
        if done.returncode == WRONG_INPUT:  # the document holds the reasons
            return _result(done.stdout.rstrip(), done.stderr.strip(), is_error=True)
        return _result(done.stdout.rstrip())


def readable_folders(home: Home) -> list[str]:
    """The folders that tools read: the server's own, the home folder, the shipped files, and the folders in
    ABLATIONS_READ_FROM."""
    given = [one for one in os.environ.get(READ_FROM, "").split(os.pathsep) if one]
    return list(dict.fromkeys([str(Path.cwd()), str(home.path), *map(str, SHIPPED), *given]))


def shell_words(arguments: Sequence[str | None], **options: Any) -> list[str]:
    """Options, then arguments, as words of a command line; values that are None, empty or False are left out.

    >>> shell_words(["loo"], budget=["2x", "10x"], score=None, paper=True)
    ['--budget=2x', '--budget=10x', '--paper', '--', 'loo']
    """
    line = []
    for name, value in options.items():
        values = [] if value is None or value is False else [value] if isinstance(value, str | int | float) else value
        line += [f"--{name}" if one is True else f"--{name}={one}" for one in values]
    return [*line, "--", *(one for one in arguments if one is not None)]


def _result(*texts: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text) for text in texts], is_error=is_error)


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
