"""Drawings that only the pages have, without Streamlit; the others are in `ablations.report`.

paper       claims of a paper beside what was found
metrics     one training metric of several runs
run         figures of one run
search      figures of a search
"""
