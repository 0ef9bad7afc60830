"""A real Kafka on this machine, started and stopped by tests."""
