"""A replay reads records of the quarantine again, and lands the records that are valid events now.

The replays of a folder are numbered 1, 2, …, and these five rules hold:

1. A replay chooses records of the quarantine, reads them again, and stages the outcome of each record. After
   all rows are staged, the replay is decided: its rows then land, unless rule 5 withdraws the replay.
2. Replay n is decided when a run creates the file of replay n in the folder ``OUT/_replays``. Only one run
   can create the file of replay n. Replay n - 1 is complete before the file of replay n is created.
3. In each Delta or Iceberg table, one commit adds the staged rows of replay n. After this commit, the ledger
   of the table counts n replays of the quarantine. The commit of replay n succeeds only if the ledger of the
   table counts fewer than n replays before the commit. Before the commit, the ledger of the table of events
   must count exactly n - 1 replays. A replay first commits to the separate tables for some types of events.
   Then the replay commits to the table of events, and then to the table of outcomes. Tables of Parquet files
   have no ledger. For Parquet, the file of replay n lists the staged files of all tables, and each staged
   file is renamed once.
4. A replay chooses only records of batches that have landed. A replay skips records that have landed in an
   earlier replay; the table of outcomes lists these landed records.
5. If a run is killed, the replay of this run may be decided although no Delta or Iceberg table has rows of
   the replay. If the tables are Delta or Iceberg tables, and no table has rows of a decided replay, a run
   with other options withdraws this replay, and chooses records again. Only a run that has locked the folder
   withdraws a decided replay, because no other run can then add rows of this replay. A run that has not
   locked the folder finishes the decided replay.

So a record lands once, even if the run of a replay is killed at any step. If the killed run had decided its
replay, the next run first finishes this replay with the staged rows, or withdraws this replay by rule 5. If
the killed run had not decided its replay, no table has changed. If two replays run at the same time, one of
the two replays is decided, and the other ends with an error message.

The module `_replay_options` selects records, and the module `_rereading` reads the records again. The module
`_replay_notes` reads and writes the files in ``OUT/_replays``, and the module `_replay_landing` commits rows.
The module `_replay` combines these modules.
"""

from cloudevents_kafka.spark.pipeline.replays._replay import ReplaySummary, replay_quarantine, replayed_kind
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions
