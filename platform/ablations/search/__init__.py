"""Search: an Optuna sampler proposes recipes, every trial is an ordinary run. A map of the room:

    space          what a `search:` block may say
    points         the space tied to the reference recipe: points, their recipes, what is out of range
    objective      what a trial is worth, read off its fits; the Pareto front of several
    record         search.json: trials planned and found, the truth of a search
    optuna_study   all that is said to Optuna; its database can be made again from the record
    loop           ask, train, tell
    tables         the space and the trials for the terminal

`space`, `points` and `record` are read by a dry run and load nothing heavy.
"""
