"""Turns a sweep file into variants and runs; holds the schema of everything its YAML may contain. A map of the room:

sweep            the keys of a sweep file
wandb_sweep      a W&B sweep file, answered with the sweep file that says the same here
family           scales made from one
claims           a paper's claims about variants
names            the names, seeds and values that a sweep file may give
resources        the `resources:` block: what a job requests from Slurm; a sweep's over its scale's
search_space     the settings that a search may vary
search_points    one point of a search space as overrides
override         dotted paths and `{times: x}` applied to a recipe of ours, or to the configuration of a program
pairs            two changes at once: those that the file names, all, or some, every change in about as many
draft            a variant as the file requests it
forms            axes, grid, zip, variants; leave_one_out: each axis that reverts to another recipe
program          the reference of a study whose trainer is a user's own program
needed_packages  packages that such a program needs and its Python lacks
program_settings  the settings of TRL, verl or prime-rl that such a program is given
side_effects     what those settings do behind a comparison
resolve          merges a recipe and a scale into one resolved recipe
recipe_differences  where two resolved recipes differ
expand           turns a sweep into variants and runs, with the highest pass rate that their task allows
reference        every key of a sweep file as Markdown, for the site
fittable         whether runs will have enough evaluations for a fit
"""
