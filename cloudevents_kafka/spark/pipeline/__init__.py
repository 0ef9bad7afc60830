"""The job that lands topics of events in tables."""
