"""A replay reads records of the quarantine again, and lands the records that are valid events now.

The replays of a folder are numbered 1, 2, …, and obey five laws:

1. A replay chooses records, reads them again, and stages the outcome of each record. Then the replay is
   decided.
2. Replay n is decided when the note with the name n is created. Only one run can create this note. Before
   that, replay n - 1 is complete.
3. In each table, one commit adds the staged rows of replay n. After this commit, the ledger of the table
   counts n replays. The commit succeeds only if the ledger counted fewer than n replays before; the ledger of
   the table of events must have counted n - 1. The order of the commits is: tables by type, the table of
   events, the table of outcomes. Parquet files have no ledger. Instead, the note lists the staged files, and
   each file is renamed once.
4. A replay chooses only records whose batch has landed. It leaves out records that have landed in an earlier
   replay; the table of outcomes contains these records.
5. If a replay was decided, but no Delta or Iceberg table has rows of it, a run with other options withdraws
   the replay, and chooses records again. Only a run that has locked the folder withdraws a replay, because
   no other run can then add rows of this replay. A run that has not locked the folder finishes the replay.

So a record lands once, even if a run is killed at any step. If the killed run had decided its replay, the
next run first finishes this replay with the staged rows. If the killed run had not decided its replay, no
table has changed. If two replays run at the same time, one of them is decided, and the other ends with an
error message.

`_replay_options` selects records, `_rereading` reads the records again, `_replay_notes` reads and writes the
notes, `_replay_landing` commits rows, and `_replay` combines these modules.
"""

from cloudevents_kafka.spark.pipeline.replays._replay import ReplaySummary, replay_quarantine, replayed_kind
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions
