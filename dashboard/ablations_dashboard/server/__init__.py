"""The server around the pages.

admission   the token, without which a page shows nothing
preload     imports and readings ahead of the first request
"""
