"""What a study could see, said before compute is spent. A map of the room:

    choices         what a study may change: seeds, budget, samples; what each choice costs
    known           what is known of a scale: its law, its noise, how far runs lie apart, how fast they train
    earlier         the same, read from the runs of a home folder
    simulated_runs  runs of the reference and of a variant that is slower or ends lower, simulated and fitted
    half_widths     the half-widths that the verdicts would have, and the difference that they would see
    foresee         all of that for every choice: a table, and the cheapest for a wanted difference
    for_claims      the cheapest in which the claims of a study would be seen
    words           the same in words
    undecided       what would tell where a comparison cannot
    command         the command that says all of it, for a plan

`known`, `simulated_runs` and `half_widths` are pure; only `earlier`, `choices` and `command` read a home folder.
"""
