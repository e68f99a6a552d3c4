"""The pages of `platform dashboard`: what a sweep has found, and how its runs are doing.

    app              title and navigation; what Streamlit runs
    views/sweep      one sweep: verdicts, curves, comparison, progress, training metrics
    views/forecast   what more compute would buy, and who would lead
    choose           the sweep and the variants, kept in the URL
    load             everything read from disk, cached until a file changes
    guard            a damaged file of the home folder becomes one message on the page
    charts           drawings that only the pages have; the others are in `ablations.report`

The home folder is ABLATIONS_HOME, else ./ablation-runs. The pages only read. Its selection is in the URL.
"""
