"""The elements of the pages.

figure      a figure in the colours of the theme that changes in place, with downloads
folded      a part that is read and drawn once it is opened
table       a table, with a download as CSV; the link that downloads a file
message     a message for a damaged file of the home folder; remarks by their weight: red, yellow, grey
"""
