"""The platform: sweep files to verdicts.

from a YAML file to runs
  source, validation   a YAML file with the line of every key; its mistakes as messages that teach
  sweep                what a sweep file may say
  lookup, resolve      recipe and scale files found, and made one resolved recipe
  override, forms      dotted paths and `{times: x}`; leave-one-out, axes, grid, zip, variants
  expand               a sweep made into variants and runs
from runs to curves
  home, plan           the folders and what a started sweep consists of
  dispatch, job        runs as submitit jobs; what happens inside one
  state                what a run is doing
from curves to a verdict
  curve, fit           measured points; eq. 1 of ScaleRL fitted to them
  compare              variants against the reference
  results              all of that for one sweep
  figures, report      Plotly figures and the page that holds them
  tracking             MLflow, made from the run folders at any time
cli                    the commands; nothing it starts with loads torch
"""
