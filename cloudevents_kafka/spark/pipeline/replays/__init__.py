"""Replays: records of the quarantine are read again with what has changed, and what is an event now lands.

The replays of a folder are numbered 1, 2, …, and obey five sentences:

1. What became of each record that a replay has chosen is staged before the replay is decided.
2. Replay n is decided when its note is created, under the name n, which succeeds once; replay n - 1 is
   complete then.
3. A table takes the staged rows of replay n in one commit, which succeeds only if its ledger counts fewer
   replays, that of events n - 1, and counts n after it: first tables by type, then events, then the outcomes.
   Files of Parquet are renamed, each once, because the note names them.
4. A replay chooses records whose batch has landed, and of which no outcome says that they have landed.
5. A replay that is in no table of Delta or Iceberg is withdrawn by a run with other options, which chooses
   again. Only a run that has locked the folder can know that, so elsewhere it is finished.

So a record lands once, after a kill at any step: what was decided is finished first by the next replay, from
what was staged; what was not decided has changed nothing. Of two replays at once one is decided, and the
other ends with a sentence.

`_replay_options` selects records, `_rereading` reads them again, `_replay_notes` has the notes,
`_replay_landing` the commits, and `_replay` puts them together.
"""

from cloudevents_kafka.spark.pipeline.replays._replay import ReplaySummary, replay_quarantine, replayed_kind
from cloudevents_kafka.spark.pipeline.replays._replay_options import ReplayOptions
