"""Small modules for several packages; these modules do not import other packages of the library.

The modules `varint` and `zigzag` encode integers with variable length. The module `epoch` defines the start
of Unix time, and the module `bounded` limits the size of caches. The module `plural` joins numbers and nouns
for messages, and the module `preview` shortens values for messages. The module `closing` closes objects at
the end of with-blocks, the module `visible` escapes characters that a terminal would obey or hide, and the
module `text_table` aligns tables. The module `locks` contains the lock for registrations, and the module
`options` describes options as fields of structs. The module `clauses` lists the sections of the
specifications, and the module `web` opens all URLs.
"""
