"""Everything read from disk, cached until a file changes.

cache       results and metrics of a sweep
run_log     the log and the kept rollouts of one run
health      when each warning about a run's health was true
"""
