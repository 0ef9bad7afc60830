"""How the commands use confluent-kafka: settings, sessions with a cluster, reading and sending.

First read `settings`, and `references`, which reads secrets from files and variables. Then read `session`,
`reader`, `sender` and `resending`. Importing the package does not import confluent-kafka, which is imported
when a client is created.
"""
