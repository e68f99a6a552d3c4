"""Findings as people read them, from the top to the bottom:

    formats    the report of a sweep as HTML, Markdown, CSV and LaTeX
    data_set   the curves of a sweep to publish: a CSV file with a card
    writers    any document for a terminal, as a page, as Markdown or as LaTeX
    documents  what a finding says: its words, tables and figures in an order
    figures    every figure, described once, for screens and papers

Thin lines are measured, thick ones fitted, dashes were not fitted, a band is the 95 % interval of the fitted curve.
"""
