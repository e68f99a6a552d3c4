"""The elements that pages are made of.

figure          a figure in the colours of the theme, to download
plotly_figure   a figure that changes in place, its zoom kept
table           a table, to download
message         a damaged file of the home folder becomes one message on the page
"""
