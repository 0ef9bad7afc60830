"""Small parts that several packages need; these parts do not import other parts of the library.

`varint` and `zigzag` implement the two variable-length encodings of integers, `epoch` defines the start of
Unix time, and `bounded` limits the size of caches. `plural` joins numbers and nouns for messages, and
`preview` shortens values for messages. `closing` closes objects at the end of with-blocks, `visible` escapes
characters that a terminal would obey or hide, and `text_table` aligns tables. `locks` contains the lock for
registrations, `options` describes options as fields of structs, `clauses` lists the sections of the
specifications, and `web` opens all URLs.
"""
