"""Text on its way to a terminal, whatever its width and whoever wrote it. A map of the room:

visible      control characters shown, not obeyed
screen       the console that every command prints on
listing      tables that never cut a number or a name: columns, or where the terminal is narrow a block per row
progress_bar  for work that takes over two seconds
sparkline    a curve as a word of twelve characters
short_names  variants of a grid by their values
"""
