"""The Kafka protocol: a codec and a produce/fetch client, from 0.7 to today's brokers."""
