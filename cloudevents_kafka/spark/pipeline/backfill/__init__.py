"""A backfill: the parts of a range that no pipeline has landed are read in batches, next to a pipeline.

The law: what is read are the gaps in the ledger of events, before the offset at which the folder's pipeline
goes on. Each batch lands as those of the pipeline do, by one conditional commit of rows and ledger, under the
name of this pipeline, so ranges join. Where a table next to the events has rows of a batch whose events did
not land, a batch begins at the same offset, and the note in ``_backfill`` says how that batch was read: it is
finished first. So each record lands once, after a kill at any step, and of two backfills at once one lands a
batch. A backfill of Parquet takes the lock of its folder and the next number of its manifests.
"""

from cloudevents_kafka.spark.pipeline.backfill._backfill_job import BackfillJob
