"""What the commands need for a terminal: exit codes, safe text, parameter types, signals and progress lines.

First read the module `errors`: it defines the exit codes, and the exceptions that end a command with an exit
code. Then read the modules `text`, `parameters`, `options`, `completion`, `help`, `signals` and `streams`.
"""
