"""`Raised`: keeps the error of a consumer's callback until the records of the same call are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Raised:
    """The first error that a callback, such as ``stats_cb`` or ``on_assign``, has raised in a client call.

    If a callback raises an error while the client polls, confluent-kafka (2.16) raises this error instead of
    returning records. But the client's position is then after these records, so they would be lost. So the
    callbacks of `keeping` raise no error. The caller of the client stores the records, and raises the error.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def keeping(self, callback: Callable[..., object]) -> Callable[..., object]:
        """Return a function that calls ``callback``, and keeps its error instead of raising the error."""

        def call(*arguments: Any) -> object:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001  # a user's function may raise any error
                self.error = self.error or error
                return None

        return call

    def take(self) -> Exception | None:
        """Return the error, or None, and forget the error."""
        error, self.error = self.error, None
        return error

    def check(self) -> None:
        """Raise the error if there is one, and forget the error."""
        if self.error is not None and (error := self.take()) is not None:
            raise error
