"""Answers from curves alone: from fits of variants to differences with intervals and verdicts. A map of the room:

    interval        an estimate with its 95 % interval and its joint interval over several comparisons
    answer          a question with its rule and its words; the answer to it
    questions       the questions of every comparison: level, ceiling, compute
    rise            whether the seeds of a variant rise, judged together; the verdict on all of them
    footing         the compute at which runs are compared, and the runs that have come so far
    level           the pass rate at equal compute, without a fitted law
    leader          the variant with the highest level, and those that may be as high
    differences     differences from the reference in ceiling and in compute
    one_law         ceilings of several runs under one common law
    repeats         the numbers of seeds, and the spread that they have in common
    run_to_run      the run-to-run spread, a two-way analysis of variance over all seeds; its only source
    student         Student's t, alone or as a mixture over laws
    main_effects    what one value of an axis does instead of another, over a grid
    grid_interactions  how much that depends on the value of another axis
    interactions    what two changes do together beyond their sum
    ladder          what becomes of a difference over scales
    outliers        runs and variants unlike their siblings: collapsed, far off, more scattered
    compare         every variant against the reference
    paper_rule      the paper's rule for ceilings; paper_grid: the paper's grid fit
    pass_rate_at    the level at the compute of a forecast
    standing        where a run stands, and what it does from there
    past_forecasts  finished runs forecast from their first parts, and how far each forecast lay off
    calibration     what such errors teach other forecasts: a shift, and the width of intervals
    forecasts       pass rate at any compute, compute to a score, cost of a point, chances to lead
    crossings       where two curves cross, and who leads beyond
    keep            whether a proposal is kept, discarded or run again, valid however often one looks
    promise         what a campaign promises of all its keeps, and the level of one proposal
    known_scale     earlier knowledge of a scale: law, noise, run-to-run spread and speed
    simulated_runs  simulated and fitted runs of the reference and of a slower variant
    half_widths     expected half-widths of a study's intervals, and the smallest differences they detect

Nothing in this room knows a home folder, a sweep or a recipe.
"""
