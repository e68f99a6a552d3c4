"""What the server does around the pages.

admission   a page opened without the token shows nothing
preload     what the server imports and reads before anybody asks
"""
