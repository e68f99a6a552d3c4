"""One file per page, with a `show` that `app` lists.

sweeps      all sweeps of the home folder
compare     the variants of a sweep, or of several, against one of them
forecast    what more compute would buy, and who would lead
run         one run: health, metrics, hours, what its policy writes, log, recipe
recipes     two recipes side by side
search      history, importances, Pareto front and trials of a search
paper       what studies found of the claims of the paper
"""
