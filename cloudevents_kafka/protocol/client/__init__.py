"""The client: connections, metadata, producing, fetching, groups."""
