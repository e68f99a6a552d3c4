"""Text written by people and policies, never markup.

escape      names, questions and messages in Markdown
rollout     a kept rollout as HTML, all of it escaped
"""
