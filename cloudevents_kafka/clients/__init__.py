"""Consumers, producers and processors of events; they wrap Kafka clients.

Read the modules in this order:

* `_protocols`, `_settings` and `_errors`: the Kafka clients that are wrapped or created, and the errors of a
  Kafka client that are final;
* `_deliveries`, `_polling` and `producer`; `_reading`, `_gathered` and `consumer`;
* `typed_data` and `serdes`: event data of a user's own types; `schema_registry`: the client of a schema
  registry;
* `EventConsumer.run`: the module `_schedule` contains the rules of a run. `_policy` and `passing` decide what
  happens after errors. `_workers` (with `_sends`) and `_thread_run` (with `_run`, `_commits`, `_automatic`
  and `_closing`) do the work. `_steps` describes how a run makes client calls. `_signals` ends a run at
  SIGTERM;
* `dead_letters`: failed records that are sent to a dead letter topic;
* `processor`, `_transactions`, `_transaction_time` and `_serving`: the processing of records exactly once;
* `aio`: consumers, producers and processors for asyncio; `oauth`: tokens from a command or an endpoint.

Importing this package imports none of these modules.
"""
