"""The terminal: output that is safe to print, errors and exit codes, signals, progress."""
