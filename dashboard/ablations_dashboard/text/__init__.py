"""Text written by people and policies, never markup.

escape      names, questions and messages in Markdown
"""
