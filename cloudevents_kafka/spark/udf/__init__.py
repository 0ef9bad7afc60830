"""The functions that Spark's Python workers run: the library's own converters.

`decode` and `encode` convert one row; `worker_registry` sends what is registered on the driver to
the workers. They import neither PySpark nor a Kafka client.
"""
