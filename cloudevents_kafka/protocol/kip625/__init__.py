"""The bytes that variable-length integers save, after KIP-625.

Read `_messages` (the declarations), `sizes` (the measurements), then `_svg` (the picture).
"""
