"""Replays read records of the quarantine again, after a change, and land the records that are events now.

The replays of a folder are numbered 1, 2, …, and obey five laws:

1. A replay chooses records, and stages what becomes of each of them. Then the replay is decided.
2. Replay n is decided when its note is created under the name n. Only one run can create this note, and
   replay n - 1 is complete before that.
3. A table takes the staged rows of replay n in one commit, after which its ledger counts n replays. The
   commit succeeds only if the ledger counted fewer than n replays before; the ledger of the table of events
   must have counted n - 1. The order of the commits is: tables by type, the table of events, the table of
   outcomes. Parquet files are renamed, each once, because the note names them.
4. A replay chooses only records whose batch has landed, and leaves out records that have landed in an earlier
   replay, as the table of outcomes shows.
5. If a replay was decided, but no Delta or Iceberg table has rows of it, a run with other options withdraws
   the replay, and chooses records again. Only a run that has locked the folder can be sure that no table will
   get rows of the replay; other runs finish the replay.

So a record lands once, even after a kill at any step. If a replay was decided, the next replay first finishes
it with the staged rows. If a replay was not decided, it has not changed any table. If two replays run at the
same time, one is decided, and the other ends with an error message.

`_replay_options` selects records, `_rereading` reads the records again, `_replay_notes` reads and writes the
notes, `_replay_landing` commits rows, and `_replay` combines these modules.
"""

from cloudevents_kafka.spark.pipeline.replays._replay import ReplaySummary, replay_quarantine, replayed_kind
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions
