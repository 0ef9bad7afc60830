"""The Kafka binding: from a record to an event, and from an event to a record.

Read `sniffer` first: what a record is, by its headers alone. `binary` and `structured`
are the two content modes, `headers` the names of binary mode's headers, `keys` the key
mappers. `decode` and `encode` are what users call; `lenient` and `lenient_headers` read
what producers are known to send beside the rules.
"""
