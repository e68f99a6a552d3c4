"""Drawings that only the pages have, without Streamlit; the others are in `ablations.report`.

claims      claims of a paper beside what was found
run         figures of one run, and one training metric of several runs
search      figures of a search
settings    figures of the settings of many runs
"""
