"""Stand-ins for confluent-kafka's clients, in memory."""
