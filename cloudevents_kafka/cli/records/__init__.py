"""Records and events in the forms in which the commands read, filter and write them.

Read `json_lines` first: it defines the line format that `consume` writes and `produce` reads. Then read
`reading`, which decides whether a record is a valid event; `resolve`, which finds the record that an edited
line means; `inputs`, which reads files, stdin and options; and `output`, which writes text for people.
`writing` uses `template` and `registry_data` for `consume`; `selection` chooses the records that are written;
and `statistics` returns the text and the JSON of `stats`.
"""
