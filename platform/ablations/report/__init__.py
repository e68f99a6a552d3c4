"""What a sweep's reader sees: figures, tables and the page. A map of the room:

page        the report, one HTML file
formats     the report as HTML, Markdown, CSV, LaTeX and PDF
document    what Markdown and LaTeX say, as plain data
methods     the methods paragraph; rounding: numbers to their uncertainty
card_page   the card of a study of the paper as Markdown
markdown    the document as Markdown; latex: as LaTeX; csv_files: numbers in full
tables      comparisons and fits for the terminal
columns     of a comparison, for every output; headings: of the other tables
sheet       CSV that spreadsheets do not compute
words       what is found, in words
curves      pass rate against compute, with fits, forecasts and asymptotes, for a screen
verdicts    differences in level, ceiling and compute of every variant, with intervals
series      what a picture of curves shows, as plain data
forest      what a figure of differences draws, as plain data
static      both for a paper: SVG, PDF and PNG by matplotlib
thinning    of readings, to what a screen can show
plane       ceiling against efficiency
dark        a figure on a dark page
linearised  readings on axes on which eq. 1 is a straight line (paper mode)
forecast    pass rates to ten budgets, and who is likely to lead there
axes        what part of compute and pass rate a figure of curves shows
colours     the colour and marker of each variant
style       the look that all figures share

Plotly draws for screens, one figure with a layout for a wide and one for a narrow screen; matplotlib draws for papers
and MLflow. Points are measured (hollow ones were not fitted), lines are fitted, dashes are extrapolated, a band is
the 95 % interval of the fitted curve. Plotly and matplotlib are imported inside functions: the command line must start
quickly.
"""
