"""Search: an Optuna sampler proposes recipes, every trial is an ordinary run. A map of the room:

    objective      what a trial is worth, read off its fits; the Pareto front of several
    record         search.json: trials planned and found, the truth of a search
    optuna_study   all that is said to Optuna; its database can be made again from the record
    loop           ask, train, tell
    tables         the space and the trials for the terminal

What a `search:` block may say is in `ablations.study`: `search_space` and `search_points`. A dry run
reads these and `record`, which load nothing heavy.
"""
