"""The page of `platform dashboard`: what a sweep has found, and how its runs are doing.

    app           title and navigation; what Streamlit runs
    views/sweep   the page: choose a sweep, then verdicts, curves, comparison, progress, training metrics
    load          everything read from disk, cached until a file changes
    charts        drawings that only the page has; the others are in `ablations.figures`

The home folder is ABLATIONS_HOME, else ./ablation-runs. The page only reads. Its selection is in the URL.
"""
