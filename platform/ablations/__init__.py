"""The platform: sweep files to verdicts.

from a YAML file to runs
  source, validation   a YAML file with the line of every key; its mistakes as messages that teach
  sweep, values        what a sweep file may say; what an axis may take
  lookup, resolve      recipe and scale files found, and made one resolved recipe
  override, forms      dotted paths and `{times: x}`; leave-one-out, axes, grid, zip, variants
  expand               a sweep made into variants and runs
from runs to curves
  home, plan           the folders and what a started sweep consists of
  run_sweep            plan, run folders, jobs, MLflow beside them
  dispatch, job        runs as submitit jobs; what happens inside one, with which code (code_version)
  state, progress      what a run is doing; all runs of a sweep as a table
  steering/            runs that end early, a total that is shared out
  search/              variants that a sampler proposes
from curves to a verdict
  task_curves          the curve of a task in a run log
  curve, fit/          measured points; eq. 1 of ScaleRL fitted to them (fit_options: how)
  compare, paper_mode  variants against the reference; the same as the paper does it
  results, summary     all of that for one sweep, as data and in words
  forecast/            what more compute would buy
  tables, figures/, report   for the terminal, as Plotly figures, and the page that holds them
MLflow, made from the run folders at any time
  tracking, batches    the synchroniser; run logs as batches of metrics (scalars: one row)
  ledger, tracker      what MLflow has; a synchroniser beside a sweep
cli/                   the commands; nothing they start with loads torch
errors                 everything the platform raises on purpose
written, counted       files checked as they are read; numbers with their noun
"""
