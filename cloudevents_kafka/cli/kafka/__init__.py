"""The use of confluent-kafka by the commands: settings, sessions with a cluster, reading and sending.

Read `settings` and `references` (which refers to secrets) first, then `session`, `reader`, `sender` and
`resending`. Importing the package does not import confluent-kafka, which is imported when a client is
created.
"""
