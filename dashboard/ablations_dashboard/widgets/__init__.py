"""The elements of the pages.

figure          a figure in the colours of the theme, with downloads
plotly_figure   a figure that changes in place, with its zoom kept
download        a link that downloads a file
folded          a part that is read and drawn once it is opened
table           a table, with a download
remark          remarks by their weight: red, yellow, grey
message         one message on the page for a damaged file of the home folder
"""
