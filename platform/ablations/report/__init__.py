"""The reports on a sweep: figures, tables and the page. A map of the room:

    page        the report, one HTML file
    formats     the report as HTML, Markdown, CSV, LaTeX and PDF
    document    the content of Markdown and LaTeX, as plain data, with the methods paragraph
    markdown    the document, or a card of the paper, as Markdown; latex: as LaTeX; csv_files: numbers in full, safe
                from spreadsheet formulas
    tables      comparisons, fits and the paper's comparison for the terminal
    columns     columns of a comparison, for every output; marks: the * and others behind its numbers
    grid_tables  the cells and main effects of a grid, as text, with the colours of heat maps
    ladder      a ladder of scales, as text and as a picture
    words       findings in words
    curves      pass rate against compute, with fits, bands and asymptotes, for a screen
    series      the content of a figure of curves, as plain data, with its axes, and readings thinned for
                a screen
    forest      differences in level, ceiling and compute of every variant, with intervals, as plain data and drawn
    static      both for a paper: SVG, PDF and PNG by matplotlib
    planes      ceiling against efficiency; readings on axes on which eq. 1 is a straight line (paper mode)
    forecast    pass rates to ten budgets, and the chances to lead there
    colours     the colour and marker of each variant, and colours on a dark page
    style       the look that all figures share, and labels at the right edge of curves, moved apart

Plotly draws for screens, one figure with a layout for a wide and one for a narrow screen; matplotlib draws for papers
and MLflow. Thin lines are measured, thick ones fitted, dashes were not fitted, a band is the 95 % interval of the
fitted curve. matplotlib takes long to import, so `formats` imports `static` only to draw.
"""
