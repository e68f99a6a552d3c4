"""Drawings that only the pages have, without Streamlit; the others are in `ablations.report`.

metrics     one training metric of several runs
run         figures of one run
search      figures of a search
"""
