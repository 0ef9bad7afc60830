"""The clients of a service: wrappers of the Kafka clients that users have.

Read the modules in this order:

* `_protocols`, `_settings` and `_errors`: the clients that are wrapped or made, and which of their errors
  are final;
* `_deliveries`, `_polling` and `producer`; `_reading`, `_gathered` and `consumer`;
* `typed_data` and `serdes`: data of your types; `schema_registry`: the client of a registry;
* `EventConsumer.run`: `_schedule`, which has its law, and `_policy` with `passing` decide; `_workers` with
  `_sends`, and `_thread_run` with `_run`, `_commits`, `_automatic` and `_closing`, act, by `_steps`;
  `_signals` ends them;
* `dead_letters`;
* `processor`, `_transactions`, `_transaction_time` and `_serving`: records that are read and written
  exactly once;
* `aio`: the same for asyncio; `oauth`: tokens of a command or an endpoint.

Importing this folder imports none of them.
"""
