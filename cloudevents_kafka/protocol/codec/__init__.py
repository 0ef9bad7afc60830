"""Encoding and decoding of messages: the module `compiler` is fast, and `interpreter` is the reference.

Read the module `interpreter` first: this module follows a layout step by step, and reports where an error is.
Then read the module `compiler`, which generates one function per layout. `_decoder_source` and
`_encoder_source` write the source text of these functions with the help of `_function_source`.
"""
