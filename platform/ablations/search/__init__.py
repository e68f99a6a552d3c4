"""Search: an Optuna sampler proposes recipes, and every trial is an ordinary variant. A map of the room:

    objective      the value of a trial, from its fits; the Pareto front of several objectives
    record         search.json, the authoritative list of trials planned and finished
    optuna_study   the only file that talks to Optuna, which learns of earlier trials from the record
    loop           ask, train, tell
    tables         the space and the trials as tables for the terminal

The `search:` block is described in `ablations.study`: `search_space` and `search_points`. A dry run reads these and
`record`, which load nothing heavy.
"""
