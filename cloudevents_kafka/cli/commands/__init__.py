"""The commands, one module each, with its click command as `command`; `app` has their table.

Read `consume` and `produce` first. `broker`, `demo` and `pipeline` run other parts
of the package; `protocol` is a group of commands.
"""
