"""One `platform sweep` from plan to end, and commands on the sweeps of a home folder. A map of the room:

make_plan   turns a study into its plan
shortening  refuses to make a study smaller than what was trained of it
run_sweep   writes the plan and run folders, and trains the runs
executor    the place where runs train while the command watches, steers and updates MLflow: this machine, a Ray cluster
on_slurm    a sweep's runs as Slurm jobs, submitted and resubmitted
reconcile   cancels jobs that left the sweep file or are held
delete      removes a sweep from its home folder, with the runs that no other sweep uses
archive     packs a sweep and its runs into one file
leftovers   temporary files of exports and imports that were killed
ending      whether a sweep has anything left to do
"""
