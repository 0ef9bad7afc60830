"""The commands of the program; the module of each command contains a click command named `command`.

The module `app` contains the table of the commands. Read `consume` and `produce` first. The commands
`broker`, `demo` and `pipeline` run other parts of the package; `protocol` is a group of commands.
"""
