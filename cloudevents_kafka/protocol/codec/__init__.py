"""Encoding and decoding of messages: the module `compiler` is fast, and `interpreter` is the reference.

Read the module `interpreter` first: `interpreter` follows a layout step by step, and reports where an error
is. Then read the module `compiler`, which generates one function per layout. `_decoder_source` and
`_encoder_source` write the source text of the generated functions with the help of `_function_source`.
"""
