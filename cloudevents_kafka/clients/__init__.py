"""The clients of a service: wrappers of the Kafka clients that users have.

Read the modules in this order:

* `_protocols` and `_errors`: the clients that are wrapped, and which of their errors are final;
* `_deliveries` and `producer`; `_reading`, `_gathered` and `consumer`;
* `typed_data` and `serdes`: data of your types;
* `_run`: `EventConsumer.run`, with `_policy`, `_passing`, `_schedule`, `_workers`, `_commits` and `_closing`;
* `dead_letters`;
* `processor` and `_transaction_time`: records that are read and written exactly once;
* `aio`: the same for asyncio; `oauth`: tokens of a command or an endpoint.

Importing this folder imports none of them.
"""
