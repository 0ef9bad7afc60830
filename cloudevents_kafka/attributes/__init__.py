"""Attributes of events: their types, the extensions that are known, and the rules that values must keep.

Read `types` first: names, the seven types, and canonical text. `uri`, `timestamps` and
`media_type` are the grammars of values. `documented_extensions` is what documents say,
`extension_types` what is known in this process. `validation` decides whether attributes
are valid; `fast_validation` passes the usual ones quickly.
"""
