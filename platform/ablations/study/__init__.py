"""A sweep file made into variants and runs, with every schema of what YAML may say. A map of the room:

sweep            what a sweep file may say
claims           what a paper says of variants
names            the names, seeds and values that a sweep file may give
resources        what a job asks for: the `resources:` block
merge_resources  that of a sweep over that of its scale, with the place of every key
search_space     what a search may vary; search_points: one point of it as overrides
override         dotted paths and `{times: x}` applied to a recipe
forms            leave-one-out, axes, grid, zip, variants
resolve          recipe and scale made one resolved recipe
recipe_differences  where two resolved recipes differ
expand           a sweep made into variants and runs
reference        every key of a sweep file as a page: docs/sweep_file.md
fittable         whether its runs will have enough readings for a fit
"""
