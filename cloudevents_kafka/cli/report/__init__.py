"""The HTML page that the command ``report`` writes.

The module `page` builds the page, `figures` draws charts, and `html` creates HTML elements.
"""
