"""The commands of a loop that improves by itself: campaign, keep."""

import math
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ablations.cli.exit_codes import DISCARD, KEEP, RUN_AGAIN, SAME_AS_BEFORE
from ablations.cli.named_sweeps import find_sweep, known_variant
from ablations.cli.options import GpusOption, HomeOption, JsonOption, LogOption, refuse_idle
from ablations.cli.output import console, print_json, tell
from ablations.errors import AblationsError
from ablations.home.home import find_home
from scalerl.durable import write_atomically
from scalerl.quantities import counted

if TYPE_CHECKING:
    from ablations.findings.fair_runs import NewRun
    from ablations.home.plan import Plan
    from ablations.home.started_sweep import StartedSweep

CampaignArgument = Annotated[str, typer.Argument(help="Name of the campaign in the home folder.")]


def campaign(
    name: CampaignArgument,
    proposals: Annotated[
        int | None, typer.Option(min=1, help="Start a campaign, with a promise for this many proposals.")
    ] = None,
    promise: Annotated[
        Literal["at_most_one", "fdr"] | None,
        typer.Option(
            help="at_most_one (default): at most one false keep in 95 % of campaigns. fdr: at most a tenth of the "
            "keeps false on average, for campaigns with many improvements."
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="Smallest gain in score worth having. Default: one run-to-run deviation.")
    ] = None,
    ceiling: Annotated[float | None, typer.Option(help="Highest possible score; a score above is refused.")] = None,
    evaluation: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File of evaluation prompts, for `platform keep --trained-on`."),
    ] = None,
    to: Annotated[Path | None, typer.Option(dir_okay=False, help="Also write what is shown to this HTML file.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a campaign of proposals against the best so far with --proposals, or show one: what was tried, kept and
    discarded, what it cost, and how many keeps are expected to be false."""
    from ablations.findings.campaign import CampaignTerms, new_campaign, read_campaign
    from ablations.report.documents.campaign import best_lines, campaign_document
    from ablations.report.writers.page import page_of
    from ablations.report.writers.terminal import print_document

    given = {"promise": promise, "margin": margin, "ceiling": ceiling, "evaluation": evaluation}
    terms = {key: value for key, value in given.items() if value is not None}
    if margin is not None and not 0 < margin < math.inf:
        raise AblationsError(f"--margin: found {margin:g}; must be a number above 0")
    if ceiling is not None and not math.isfinite(ceiling):
        raise AblationsError(f"--ceiling: found {ceiling:g}; must be a number; without a ceiling leave the option out")
    if proposals is None:
        refuse_idle("a campaign that is shown", {f"--{key}": value for key, value in terms.items()})
        found = read_campaign(find_home(home), name)
    else:
        if evaluation is not None:
            terms["evaluation"] = str(evaluation.absolute())
        found = new_campaign(find_home(home), name, CampaignTerms(proposals=proposals, **terms))
    if to is not None:
        write_atomically(to, page_of(campaign_document(found), title=f"Campaign {name}").encode())
    if as_json:
        best = found.best
        print_json(
            {
                "campaign": name,
                "best": best and best.name,
                "proposals": len(found.candidates) - 1 if best else 0,
                "kept": [one.name for one in found.bests if one.number],
                "decisions": {one.name: one.decision and one.decision["word"] for one in found.candidates.values()},
                "runs": len(found.runs),
                "compute": found.compute,
                "expected_false_keeps": found.expected_false,
                "says": best_lines(found),
                "ledger": str(found.ledger.path),
            }
        )
    else:
        print_document(campaign_document(found), console())


def keep(
    campaign: CampaignArgument,
    proposal: Annotated[
        str, typer.Argument(help='Name of the proposal; the first is the start. "best" is the best so far.')
    ],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUNS", help="Runs of the proposal: a sweep, logs with --log, or a file of curves."),
    ] = None,
    score: Annotated[list[float] | None, typer.Option(help="Score of one run, higher is better; repeatable.")] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="Variant of the sweep. Default: the proposal's name; for the start the reference."),
    ] = None,
    log: LogOption = None,
    gpus: GpusOption = None,
    code: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder of the proposal's code and settings, by which it is recognised; repeatable."),
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            help="name=value that all runs must share, such as evaluation=held-out-2 or machine=a; repeatable."
        ),
    ] = None,
    trained_on: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="File of training prompts; refused with evaluation prompts in it."
        ),
    ] = None,
    says: Annotated[str, typer.Option(help="What the proposal changes, for the record.")] = "",
    withdraw: Annotated[
        float | None, typer.Option(help="Take back a mistyped score of the proposal; --says may tell why.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record runs of a proposal and say what to do with it: keep (exit code 0), discard (10), run again (11), or same
    as before (12). The answer holds however often you ask.

    Without runs, the proposal is recorded, and the answer says how many runs it needs.
    """
    from ablations.findings.campaign import BEST_SO_FAR, opened
    from ablations.findings.fair_runs import identity_of_files, refuse_evaluation_prompts, runs_of_sweep
    from ablations.report.documents import campaign as words

    where, unfinished, step = find_home(home), 0, None
    new, identity = bare_scores(score or [], condition or []), identity_of_files(code or [], home=where.path)
    with opened(where, campaign) as found:
        if trained_on is not None:
            refuse_evaluation_prompts(trained_on, found.terms.evaluation)
        if runs:
            refuse_idle("runs", {"--score": score, "--code": code, "--condition": condition, "--withdraw": withdraw})
            at = next((run.conditions.get("budget") for run in found.runs), None)
            one = found.named(proposal)
            is_start = not found.candidates or (one is not None and one.number == 0)
            default = None if is_start else one.name if one else proposal
            sweep = sweep_of(home, runs, log, gpus)
            named = named_variant(sweep.plan, variant, default)
            new, identity, unfinished = runs_of_sweep(sweep, named, compute=float(at.split()[0]) if at else None)
        else:
            refuse_idle("--score", {"--variant": variant, "--log": log, "--gpus": gpus})
            refuse_idle("no --score", {} if score else {"--condition": condition})
        if withdraw is not None:
            refuse_idle("--withdraw", {"--score": score, "--code": code})
            found.withdraw(proposal, withdraw, says)
            says = ""
        if (other := found.same_as(proposal, identity)) is not None:
            lines, exit_code = words.lines_on_same(proposal, other), SAME_AS_BEFORE
        else:
            is_new = found.named(proposal) is None
            candidate = found.add(proposal, new, identity=identity, says=says)
            is_asked_as_best = new or withdraw is not None or not candidate.number or proposal == BEST_SO_FAR
            if candidate is found.best and is_asked_as_best:
                lines, exit_code = words.best_lines(found), KEEP if found.is_measured else RUN_AGAIN
            elif candidate.decision is not None or not candidate.number:
                lines = [words.line_on_known(candidate), *words.best_lines(found)]
                exit_code = KEEP if candidate.number in found.kept else DISCARD
            else:
                step = found.decide(candidate)
                lines = words.answer_lines(found, step)
                exit_code = {"keep": KEEP, "again": RUN_AGAIN}.get(step.word, DISCARD)
            told = words.lines_on_new(found, candidate) if is_new else []
            told += words.odd_score_lines(found, candidate) if new else []
            told += [f"{counted(unfinished, 'run')} of it still to end: ask again then."] if unfinished else []
            lines[-1:-1] = told
    if as_json:
        print_json(words.answer_json(found, step, lines, exit_code))
    else:
        tell("\n".join(lines))
    raise typer.Exit(exit_code)


def bare_scores(scores: list[float], conditions: list[str]) -> "list[NewRun]":
    """Runs of which only the score is given, made on this machine unless the conditions say another."""
    from ablations.findings.fair_runs import NewRun
    from scalerl.run.status_file import processor

    told = {"machine": f"{socket.gethostname()}, {processor()}"}
    for text in conditions:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise AblationsError(f"--condition: found {text!r}; write name=value, for example evaluation=held-out-2")
        told[name] = value
    return [NewRun(score=one, conditions=told) for one in scores]


def sweep_of(home: Path | None, names: list[str], log: str | None, gpus: float | None) -> "StartedSweep":
    """The one sweep that is named, or logs as a sweep."""
    from ablations.cli.read import foreign_runs, given

    foreign = foreign_runs(names, given(trainer=log, gpus=gpus), {}, mlflow=None)
    if not foreign.kind and len(names) > 1:
        raise AblationsError(f"found {len(names)} sweeps; name one, with the variant in --variant")
    return foreign.opened_one(find_home(home)) if foreign.kind else find_sweep(home, names[0])


def named_variant(plan: "Plan", variant: str | None, default: str | None) -> str:
    """The variant that is named, else the only one, else the default, else the reference."""
    only = plan.variants[0].name if len(plan.variants) == 1 else None
    return known_variant(variant or only or default or plan.reference, plan).name
