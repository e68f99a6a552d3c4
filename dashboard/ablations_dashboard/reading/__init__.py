"""Everything read from disk, cached until a file changes.

cache       results of a sweep
contents    the pages that a home folder has content for
run_log     the log, metrics and kept rollouts of one run, what is wrong with it, and when each warning was true
"""
