"""Kafka for the commands: settings, clients, reading and sending."""
