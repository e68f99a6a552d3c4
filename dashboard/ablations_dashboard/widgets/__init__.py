"""The elements of the pages.

theme       light or dark
figure      a figure in the colours of the theme that changes in place, with downloads
table       a table, with a download as CSV; the link that downloads a file
links       links to other pages
document    the document of a finding
message     a message for a damaged file of the home folder
"""
