"""A sweep file made into variants and runs, with every schema of what YAML may say. A map of the room:

sweep            what a sweep file may say
values           what an axis may take
resources        what a job asks for: the `resources:` block
merge_resources  that of a sweep over that of its scale, with the place of every key
search_space     what a search may vary; search_points: one point of it as overrides
override         dotted paths and `{times: x}` applied to a recipe
forms            leave-one-out, axes, grid, zip, variants
resolve          recipe and scale made one resolved recipe
expand           a sweep made into variants and runs
fittable         whether its runs will have enough readings for a fit
"""
