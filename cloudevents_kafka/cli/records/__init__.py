"""Records and events in the forms in which the commands read, filter and write them.

First read the module `json_lines`: it defines the line format that `consume` writes and `produce` reads. Then
read `reading`, which decides whether a record is a valid event, and `resolve`, which finds the record to send
for a line that the user has edited. The module `inputs` reads files, stdin and options; the module `output`
writes text for people. For the command `consume`, the module `writing` uses the modules `template` and
`registry_data`. The module `selection` chooses the records that are written. The module `statistics` returns
the counts for the command `stats`, as text and as JSON.
"""
