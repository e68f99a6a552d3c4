"""The selection of a page.

url         the selection in the URL, kept across pages
variants    the sweep, others beside it, the baseline and the variants
"""
