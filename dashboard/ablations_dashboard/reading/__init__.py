"""Everything read from disk, cached until a file changes.

cache       results and metrics of a sweep
run_log     the log and the kept rollouts of one run
"""
