"""The pages of `platform dashboard`: what a sweep has found, and how its runs are doing.

The rooms by height; each imports only what stands below it:

    app         the list of pages and the chosen one; what Streamlit runs
    server      the token, and what is imported and read before anybody asks
    views       one file per page
    sections    the parts of the page Compare
    widgets     figures, tables and messages on a page
    selection   what is chosen, in the URL and kept over a change of page
    drawings    figures that only the pages have      reading   what is on disk, cached      text   never markup

The home folder is ABLATIONS_HOME, else ./ablation-runs. The pages only read. Its selection is in the URL.
"""
