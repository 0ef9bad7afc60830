"""What KIP-625 would save: `sizes` measures and presents it, `command` prints it."""

from conformance.kip625.command import command

__all__ = ["command"]
