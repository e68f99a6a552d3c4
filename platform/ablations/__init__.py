"""The platform: sweep files to verdicts.

from a YAML file to runs
  source, validation   a YAML file with the line of every key; its mistakes as messages that teach
  sweep, values        what a sweep file may say; what an axis may take
  lookup, resolve      recipe and scale files found, and made one resolved recipe
  override, forms      dotted paths and `{times: x}`; leave-one-out, axes, grid, zip, variants
  expand               a sweep made into variants and runs
from runs to curves
  home, plan           the folders and what a started sweep consists of (make_plan: from a study)
  run_sweep            run folders, jobs, MLflow beside them
  executors, dispatch  where runs train: processes of this machine, or jobs of Slurm's
  slurm/               submission, jobs, states and the doctor
  job                  what happens inside one, with which code (code_version)
  cancellation         which runs their user has cancelled
  state, rows, progress, status_table   what a run is doing; all runs of a sweep, read and shown
  failures, run_logs, follow_log, time_left   why runs failed, what they printed, when they will end
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
  ledger, tracker, sync_watch   what MLflow has; a synchroniser beside a sweep, and one on a login node
cli/                   the commands; nothing they start with loads torch
errors                 everything the platform raises on purpose
written, counted       files checked as they are read; numbers with their noun
"""
