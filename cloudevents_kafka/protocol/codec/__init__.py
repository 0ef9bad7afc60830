"""Messages to bytes and back: a compiler for speed, and an interpreter that defines the result.

Read `interpreter` (it follows a layout step by step and locates errors), then `compiler` (one generated
function per layout), whose source comes from `_decoder_source` and `_encoder_source`, both built on
`_function_source`.
"""
