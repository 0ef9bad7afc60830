"""Encoding and decoding of messages: a compiler for speed, and an interpreter that defines the result.

Read `interpreter` first: it follows a layout step by step, and locates errors. Then read `compiler`, which
generates one function per layout. `_decoder_source` and `_encoder_source` write the source text of these
functions with the help of `_function_source`.
"""
