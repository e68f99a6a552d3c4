"""The platform: sweep files to verdicts.

from a YAML file to runs
  source, validation   a YAML file with the line of every key; its mistakes as messages that teach
  sweep                what a sweep file may say
  lookup, resolve      recipe and scale files found, and made one resolved recipe
  override, forms      dotted paths and `{times: x}`; leave-one-out, axes, grid, zip, variants
  expand               a sweep made into variants and runs
from runs to curves
  home, plan           the folders and what a started sweep consists of
  run_sweep            plan, run folders, jobs, MLflow beside them
  dispatch, job        runs as submitit jobs; what happens inside one, with which code (code_version)
  state, progress      what a run is doing; all runs of a sweep as a table
from curves to a verdict
  curve, fit/          measured points; eq. 1 of ScaleRL fitted to them
  compare              variants against the reference
  results, summary     all of that for one sweep, as data and in words
  tables, figures/, report   for the terminal, as Plotly figures, and the page that holds them
MLflow, made from the run folders at any time
  tracking, batches    the synchroniser; run logs as batches of metrics (scalars: one row)
  ledger, tracker      what MLflow has; a synchroniser beside a sweep
cli/                   the commands; nothing they start with loads torch
errors                 everything the platform raises on purpose
"""
