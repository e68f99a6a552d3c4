"""What is chosen.

url         kept in the URL and over a change of page
variants    the sweep, others beside it, the baseline and the variants
"""
