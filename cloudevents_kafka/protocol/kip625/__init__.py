"""The bytes that variable-length integers save, after KIP-625: `sizes` measures them, `_svg` draws them."""
