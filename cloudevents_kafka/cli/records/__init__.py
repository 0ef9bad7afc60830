"""Records and events as the commands read, filter and write them.

Read `json_lines` first: the line format that `consume` writes and `produce` reads. Then `reading`, which
finds the verdict on a record; `resolve`, which finds the record that an edited line means; `inputs`;
`output`, with the text for people; `template`
and `registry_data`, which `writing` has for `consume`; `selection`, the records that it writes; and
`statistics`, the text and the JSON of `stats`.
"""
