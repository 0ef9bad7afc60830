"""The terminal: exit codes, text that is safe to print, parameter types, signals and progress lines.

Read `errors` first: it defines the exit codes, and the exceptions that end a command with these codes. Then
read `text`, `parameters`, `options`, `completion`, `help`, `signals` and `streams`.
"""
