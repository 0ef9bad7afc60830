"""From messages to bytes and back: a compiler of flat functions, and an interpreter as its reference."""
