"""Small parts that several packages need and that import nothing of the library.

`varint` and `zigzag` are the two notations of integers of variable length, `epoch` is the start of
Unix time, `bounded` limits caches and windows, `plural` joins numbers and nouns for messages,
`closing` ends with-blocks, `preview` shortens values for them, `visible` escapes what a terminal would
obey or hide, `text_table` aligns tables, `locks` has the lock of what users register, `options` says what
fields of options are for users, `clauses` has the sections of the specifications, and `web` opens all
URLs.
"""
