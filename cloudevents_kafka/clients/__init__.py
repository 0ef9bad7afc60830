"""The clients of a service: wrappers of the Kafka clients that users have.

Read the modules in this order:

* `_protocols`, `_settings` and `_errors`: the Kafka clients that are wrapped or created, and which of their
  errors are final;
* `_deliveries`, `_polling` and `producer`; `_reading`, `_gathered` and `consumer`;
* `typed_data` and `serdes`: data of your types; `schema_registry`: the client of a registry;
* `EventConsumer.run`: `_schedule` has its rules, and decides with `_policy` and `passing`; `_workers` (with
  `_sends`) and `_thread_run` (with `_run`, `_commits`, `_automatic` and `_closing`) do the work, by `_steps`;
  `_signals` ends it;
* `dead_letters`;
* `processor`, `_transactions`, `_transaction_time` and `_serving`: records that are read and written
  exactly once;
* `aio`: the same for asyncio; `oauth`: tokens of a command or an endpoint.

Importing this folder imports none of them.
"""
