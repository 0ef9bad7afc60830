"""confluent-kafka for the commands: settings, a session with a cluster, reading and sending.

Read `settings` first, with `references` to secrets, then `session`, `reader`, `sender` and `resending`. The
package loads no client: confluent-kafka is imported when a client is created.
"""
