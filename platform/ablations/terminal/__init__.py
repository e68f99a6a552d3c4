"""Text for a terminal of any width, safe to print from any source. A map of the room:

visible       control characters shown instead of obeyed
encoding      signs in ASCII for an output that is not UTF-8
screen        the console on which every command prints
own_command   the name by which the user called `platform`
progress_bar  a bar for work that takes over two seconds
short_names   short names for the variants of a grid
"""
