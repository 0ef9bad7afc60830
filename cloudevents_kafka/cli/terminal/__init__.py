"""The terminal: exit codes, text that is safe to print, parameter types, signals, progress.

Read `errors` first: each exit code and the exception that ends a command with it. Then `text`,
`parameters`, `options`, `completion`, `help`, `signals` and `streams`.
"""
