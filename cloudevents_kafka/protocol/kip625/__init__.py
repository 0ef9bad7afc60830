"""The sizes that variable-length integers would save (KIP-625)."""
