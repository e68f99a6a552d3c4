"""The reports on a sweep: figures, tables and the page. A map of the room:

    page        the report, one HTML file
    formats     the report as HTML, Markdown, CSV, LaTeX and PDF
    document    the content of Markdown and LaTeX, as plain data
    methods     the methods paragraph
    card_page   the card of a study of the paper as Markdown
    markdown    the document as Markdown; latex: as LaTeX; csv_files: numbers in full
    tables      comparisons and fits for the terminal
    columns     columns of a comparison, for every output
    grid_tables  the cells and main effects of a grid, as text
    ladder_tables  a ladder of scales, as text; ladder_figure: as a picture
    heat        colours that make heat maps of them
    sheet       CSV that is safe from spreadsheet formulas
    words       findings in words
    leading     the variants in colour
    curves      pass rate against compute, with fits, bands and asymptotes, for a screen
    verdicts    differences in level, ceiling and compute of every variant, with intervals
    end_labels  labels at the right edge of the curves, moved apart
    series      the content of a figure of curves, as plain data
    forest      the content of a figure of differences, as plain data
    static      both for a paper: SVG, PDF and PNG by matplotlib
    thinning    readings thinned for a screen
    plane       ceiling against efficiency
    dark        a figure on a dark page
    linearised  readings on axes on which eq. 1 is a straight line (paper mode)
    forecast    pass rates to ten budgets, and the chances to lead there
    axes        the range of compute and pass rate of a figure of curves
    colours     the colour and marker of each variant
    style       the look that all figures share

Plotly draws for screens, one figure with a layout for a wide and one for a narrow screen; matplotlib draws for papers
and MLflow. Thin lines are measured, thick ones fitted, dashes were not fitted, a band is the 95 % interval of the
fitted curve. matplotlib takes long to import, so `formats` imports `static` only to draw.
"""
