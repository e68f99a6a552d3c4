"""Findings of a sweep and prospects of a study: answers from the runs of a home folder. A map of the room:

results         curves, fits and comparison of a sweep; summary: as a short table for a prompt or notebook
fitted_variant  the runs of a variant, and those of them that count
variant_comparison  their comparison with the reference, with what other sweeps say on the run-to-run spread
remarks         all remarks to read before the numbers; remark: one of them, and the words they share
copies          remarks on runs that have the evaluations of others; paces: on compute a step that is far from usual
starts          remarks on runs that begin with another score, or late
held_out_changes  remarks on runs whose held-out set may have changed; best_so_far: whose score may be the best so far
declines        remarks on runs that collapsed or fell; trainer_warnings: on what trainers warned of
run_ends        remarks on runs that ended before the others, and on the compute at which levels are read
several_sweeps  several sweeps against one reference
repeated_runs   evidence on the run-to-run spread from repeated runs of other sweeps
scale_ladder    differences over the scales of a study
grid            the cells and main effects of crossed axes
order           variants in another order
advice          what to run next, and what would settle open questions
unfinished_runs runs that have not reached the budget, and the command that trains them on
sweep_forecast  forecasts of the variants of a sweep, and their curves; kept_forecast: forecasts kept beside the sweep
finished_runs   finished runs, and what the errors of their forecasts teach; backtest: those forecasts, run by run
design_options  seeds, budgets and samples to choose from, the cost of each choice, and the command that lists them
earlier_runs    knowledge of a scale from the runs of a home folder
own_spread      the run-to-run spread that the comparison finds from a study's own runs
study_design    the resolution of each design of a study; curve_design: of imported runs
cheapest_design   the cheapest design for a wanted difference; claim_design: for the claims of a study
paper_comparison  the paper's comparison: its margin of 0.02, its B at a common A
regime          how far the runs are from the paper's regime; published_regime: its numbers, with their sources
campaign        proposals one after the other against the best so far; fair_runs: the runs that may be compared
claim_card      the claims of a study, judged; the written cards of studies, read again
"""
