"""One file per page, with a `show` that `app` lists.

sweeps      all sweeps of the home folder
compare     the variants of one or several sweeps against one of them
runs        all runs of a sweep as a table
forecast    pass rates at more compute, and the likely leader
ladder      a study at several scales
run         one run: health, metrics, hours, rollouts, log, recipe
recipes     two recipes side by side
search      history, importances, Pareto front and trials of a search
campaigns   loops that improve by themselves
paper       findings of studies on the claims of the paper
"""
