"""A replay reads records of the quarantine again, and lands the records that are valid events now.

The replays of a folder are numbered 1, 2, …, and these five rules hold:

1. A replay chooses records, reads them again, and stages the outcome of each record. Then the replay is
   decided.
2. Replay n is decided when the file of replay n in ``OUT/_replays`` is created. Only one run can create
   this file. Replay n - 1 is complete before this file is created.
3. In each table, one commit adds the staged rows of replay n. After this commit, the ledger of the table
   counts n replays. The commit succeeds only if the ledger of the table counts fewer than n replays before
   the commit. In the table of events, the ledger must count exactly n - 1 replays before the commit. The
   separate tables for some types of events receive the first commits. The table of events receives the next
   commit, and the table of outcomes receives the last commit. Parquet files have no ledger. For Parquet, the
   file of replay n lists the staged files, and each staged file is renamed once.
4. A replay chooses only records whose batch has landed. A replay skips records that have landed in an earlier
   replay; the table of outcomes lists these records.
5. If a run is killed, its replay may be decided although no Delta or Iceberg table has rows of this replay. A
   run with other options withdraws such a replay, and chooses records again. Only a run that has locked the
   folder withdraws a replay, because no other run can then add rows of this replay. A run that has not locked
   the folder finishes the replay instead.

So a record lands once, even if a run is killed at any step. If the killed run had decided its replay, the
next run first finishes this replay with the staged rows, or withdraws it as rule 5 says. If the killed run
had not decided its replay, no table has changed. If two replays run at the same time, one of them is decided,
and the other ends with an error message.

The module `_replay_options` selects records, and the module `_rereading` reads the records again. The module
`_replay_notes` reads and writes the files in ``OUT/_replays``, and the module `_replay_landing` commits rows.
The module `_replay` combines these modules.
"""

from cloudevents_kafka.spark.pipeline.replays._replay import ReplaySummary, replay_quarantine, replayed_kind
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions
