"""Archive Spark's Java classes for a fast start, and print the path of the archive."""

from cloudevents_kafka.spark.pipeline.session._archiving import write_class_archive

if __name__ == "__main__":
    print(write_class_archive())  # noqa: T201
