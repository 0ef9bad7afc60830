"""How the commands use confluent-kafka: the client's settings, sessions with a cluster, reading and sending.

First read the module `settings`, and the module `references`, which reads secrets from files and variables.
Then read the modules `session`, `reader`, `sender` and `resending`. Importing the package does not import
confluent-kafka, which is imported when a client is created.
"""
