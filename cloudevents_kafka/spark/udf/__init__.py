"""What Spark's Python workers run: the converters, for what Spark cannot read by itself."""
