"""What runs are doing, shown. A map of the room:

sweeps     every sweep of a home folder in one line
progress   every run of a sweep, from the run folders and Slurm
rows       one run of a sweep, and what is counted over all of them
table      what `platform status` prints
units      the processes of runs on the wall clock
live       the same while a sweep runs
time_left  when runs will end
failures   failed runs by cause
run_logs   what runs printed; follow_log: while they print it
"""
