"""The pages of `platform dashboard`: the findings of a sweep, and the progress of its runs.

The rooms by height; each imports only what stands below it:

    app         the list of pages and the chosen one; run by Streamlit
    server      the token, and the imports and readings ahead of the first request
    views       one file per page
    sections    the parts of the page Compare
    widgets     figures, tables and messages on a page
    selection   the reader's selection, in the URL and kept across pages
    drawings    figures that only the pages have      reading   cached readings from disk
    run_table   all runs as one table, filtered and grouped
    escape      names, questions and messages of people and policies in Markdown, never markup

The home folder is ABLATIONS_HOME, else ./ablation-runs. The pages only read. The selection of a page is in the URL.
"""
