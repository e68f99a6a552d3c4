"""Writers of documents, one for each form; the dashboard has another.

terminal   the terminal; terminal_table: its tables, at any width
page       one HTML file that needs no network, with `page.html` for its look
markdown   Markdown, with figures as pictures
latex      LaTeX, with figures as PDF and SVG
csv_files  not of documents: the numbers of a comparison in full, safe from spreadsheet formulas
"""
