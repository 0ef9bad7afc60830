"""Small parts that several rooms need and that import nothing of the package.

`varint` and `zigzag` are the two notations of integers of variable length, `epoch` is
the start of Unix time, `bounded` limits caches and windows, and
`plural` joins numbers and nouns for messages.
"""
