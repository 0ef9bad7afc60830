"""Small parts that several packages need and that import nothing of the library.

`varint` and `zigzag` are the two encodings of integers of variable length, `epoch` is the start of Unix time,
and `bounded` limits caches. `plural` joins numbers and nouns for messages, and `preview` shortens values for
messages. `closing` ends with-blocks, `visible` escapes characters that a terminal would obey or hide, and
`text_table` aligns tables. `locks` has the lock for registrations, `options` describes the fields of options,
`clauses` has the sections of the specifications, and `web` opens all URLs.
"""
