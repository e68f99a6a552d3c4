"""Shows the state of runs. A map of the room:

sweeps     every sweep of a home folder in one line
progress   every run of a sweep, from the run folders and Slurm
remarked   remarks on the runs of a sweep as they are now
rows       one run of a sweep, and sums over all of them
table      the table of `platform status`
units_table  the processes of runs on the wall clock
live_table  the table while a sweep runs
notifier    tells the sweep's webhook
time_left  when runs will end
failures   failed runs by cause
run_logs   what runs printed, and print
"""
