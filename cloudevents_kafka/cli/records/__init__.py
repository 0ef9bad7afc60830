"""Records and events in the forms in which the commands read, filter and write them.

Read `json_lines` first: it defines the line format that `consume` writes and `produce` reads. Then read
`reading`, which decides whether a record is a valid event, and `resolve`, which finds the record for an
edited line. `inputs` reads files, stdin and options, and `output` writes text for people. For the command
`consume`, the module `writing` uses the modules `template` and `registry_data`. The module `selection`
chooses the records that are written. The module `statistics` returns the text and the JSON of the command
`stats`.
"""
