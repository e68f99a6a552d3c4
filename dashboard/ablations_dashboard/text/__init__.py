"""Text that people and policies wrote, never markup.

escape      names, questions and messages in Markdown
rollout     a kept rollout as HTML, all of it escaped
"""
