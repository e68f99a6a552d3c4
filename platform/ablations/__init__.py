"""Ablation studies of reinforcement learning: curves, fits and verdicts, for a notebook or a script.

    import ablations

    ablations.sweeps()                          # names of the sweeps in ./ablation-runs, or in a home that you name
    results = ablations.open_sweep("loo")       # shown as a table of variants and verdicts
    results.to_frame()                          # the comparison as a pandas DataFrame
    results.variant("loo-loss").fits            # a fit per seed
    ablations.curves_figure(results)            # a Plotly figure

    fit_curve, read_curves, Curve, Fit                          a curve and its fit
    sweeps, open_sweep, Results, compare                        a sweep, and variants against a reference
    forecast_sweep, backtest_sweep, paper_comparison            forecasts, their backtest, the paper's comparison
    curves_figure, verdicts_figure, forecast_figure             Plotly figures
    curves_picture, differences_picture                         the same for a paper
    start                                                       the log of a training script of your own
    AblationsError                                              an error that the user can put right

docs/python.md has an example of each name. A name is imported when it is first used, so that `import ablations` is
quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ablations.answers.compare import compare
    from ablations.errors import AblationsError
    from ablations.findings.paper_comparison import paper_comparison
    from ablations.findings.results import Results, open_sweep, sweeps
    from ablations.findings.sweep_forecast import backtest_sweep, forecast_sweep
    from ablations.fit.curve import Curve
    from ablations.fit.curve_file import read_curves
    from ablations.fit.fitting import fit_curve
    from ablations.fit.result import Fit
    from ablations.log import start
    from ablations.report.figures.plots import (
        curves_figure,
        curves_picture,
        differences_picture,
        forecast_figure,
        verdicts_figure,
    )

__version__ = "0.1.0"

__all__ = [
    "AblationsError",
    "Curve",
    "Fit",
    "Results",
    "backtest_sweep",
    "compare",
    "curves_figure",
    "curves_picture",
    "differences_picture",
    "fit_curve",
    "forecast_figure",
    "forecast_sweep",
    "open_sweep",
    "paper_comparison",
    "read_curves",
    "start",
    "sweeps",
    "verdicts_figure",
]

MODULES = {
    "AblationsError": "errors",
    "Curve": "fit.curve",
    "Fit": "fit.result",
    "Results": "findings.results",
    "backtest_sweep": "findings.sweep_forecast",
    "compare": "answers.compare",
    "curves_figure": "report.figures.plots",
    "curves_picture": "report.figures.plots",
    "differences_picture": "report.figures.plots",
    "fit_curve": "fit.fitting",
    "forecast_figure": "report.figures.plots",
    "forecast_sweep": "findings.sweep_forecast",
    "open_sweep": "findings.results",
    "paper_comparison": "findings.paper_comparison",
    "read_curves": "fit.curve_file",
    "start": "log",
    "sweeps": "findings.results",
    "verdicts_figure": "report.figures.plots",
}
"""Module that defines each name of `__all__`."""

"""The rooms by height; each imports only what stands below it:

    cli        the commands
    imports    runs of other trainers, and exported sweeps, made runs of a home folder
    running    one `platform sweep` from plan to end
    search     variants that a sampler proposes
    tracking   MLflow, made from the run folders at any time
    report     figures, tables and the page                status    what runs are doing, shown
    steering   runs that end early
    ray        runs on a Ray cluster
    findings   what a sweep has found, or could find       slurm     runs as jobs of a Slurm cluster
    readings   run folders made into fitted runs           pools     where runs train: this machine, and what is shared
    diagnosis  why a run went wrong, by its log
    answers    variants against a reference, from curves alone
    home       what a started sweep leaves on disk         study     a sweep file made into variants and runs
    logs       what other trainers log, as curves
    fit        eq. 1 of ScaleRL fitted to a curve          files     YAML and JSON with the place of every key
    terminal   tables for any width, text that cannot steer the terminal
    log        the log of a training script of your own, written by the script
    errors, nearest_name     what the platform raises on purpose; the nearest name to a mistyped one
    signals, text            signals; numbers and messages as people read them
"""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
