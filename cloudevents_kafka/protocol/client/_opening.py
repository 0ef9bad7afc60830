"""`Opening`: a connection that a thread opens, so that a silent broker does not delay other brokers."""

from __future__ import annotations

import threading
from typing import Final

from cloudevents_kafka.protocol.client._address import Address
from cloudevents_kafka.protocol.client._broker import connect
from cloudevents_kafka.protocol.client._connection import Connection
from cloudevents_kafka.protocol.client._retry import Deadline
from cloudevents_kafka.protocol.client._settings import ConnectionSettings
from cloudevents_kafka.protocol.errors import ClientError, ProtocolError


class Opening:
    """A connection that is being opened; `close` and `abort` may be called at any time."""

    def __init__(self, address: Address, settings: ConnectionSettings, deadline: Deadline) -> None:
        """Start the thread that opens the connection; the thread ends at the deadline."""
        self._lock: Final = threading.Lock()
        self._ended: Final = threading.Event()
        self._aborted = False
        self._connection: Connection | None = None
        self._error: Exception | None = None
        arguments = (address, settings, deadline)
        threading.Thread(target=self._run, args=arguments, name="kafka-connect", daemon=True).start()

    def done(self, seconds: float) -> bool:
        """Return whether the thread ends within some seconds."""
        return self._ended.wait(seconds)

    def result(self) -> Connection:
        """Return the connection; raise an error if the thread has not opened the connection."""
        if self._error is not None or self._connection is None:
            raise self._error or ClientError("closed while connecting")
        return self._connection

    def abort(self) -> None:
        """End the thread."""
        with self._lock:
            self._aborted = True
            if self._connection is not None:
                self._connection.abort()

    def close(self) -> None:
        self.abort()
        if self._ended.is_set() and self._connection is not None:
            self._connection.close()

    def _run(self, address: Address, settings: ConnectionSettings, deadline: Deadline) -> None:
        try:
            connect(address, settings, deadline, self._opened)
        except ProtocolError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001  # `result` raises it
            self._error = ClientError(f"{address}: connecting failed: {error!r}")
            self._error.__cause__ = error
        finally:
            with self._lock:
                if self._aborted and self._connection is not None:
                    self._connection.close()
                self._ended.set()

    def _opened(self, connection: Connection) -> None:
        """Store a connection for `abort` to close; raise `ClientError` if `abort` was called before."""
        with self._lock:
            self._connection = connection
            if self._aborted:
                connection.close()
                raise ClientError("closed while connecting")
