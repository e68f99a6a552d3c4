"""The pages of `platform dashboard`: what a sweep has found, and how its runs are doing.

    app              the token, the list of pages and the chosen one; what Streamlit runs
    ahead            what the server imports and reads before anybody asks
    admission        a page opened without the token shows nothing
    selection        what is chosen, in the URL and kept over a change of page
    views            one file per page
    sections         the parts of the page Compare
    choose           the sweep, others beside it, the baseline and the variants
    load             everything read from disk, cached until a file changes
    run_log          the log and the kept rollouts of one run, cached likewise
    run_figures      figures of one run
    rollout_text     a kept rollout as HTML, all of it escaped
    search_figures   figures of a search
    guard            a damaged file of the home folder becomes one message on the page
    charts           drawings that only the pages have; the others are in `ablations.report`
    plotly_figure    a figure that changes in place, its zoom kept
    figures, tables  a figure and a table on a page, in the colours of the theme, to download
    written          text that people wrote, never markup

The home folder is ABLATIONS_HOME, else ./ablation-runs. The pages only read. Its selection is in the URL.
"""
