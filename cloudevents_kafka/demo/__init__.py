"""The library at work on a machine of its own: a shop's events through Kafka into tables."""
