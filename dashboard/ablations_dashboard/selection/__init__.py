"""The selection of a page.

url         the selection in the URL, kept across pages
sweeps      the sweep, and others beside it
baseline    the variant that the others are compared with
variants    the variants in colour, and in grey
"""
