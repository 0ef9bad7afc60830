"""The checks of the command ``doctor`` that find out whether a broker and a schema registry answer."""

from __future__ import annotations

import json
from http.client import HTTPException, InvalidURL
from typing import Final
from urllib.error import HTTPError

from cloudevents_kafka.cli.kafka.session import BrokerSession
from cloudevents_kafka.cli.kafka.settings import Settings
from cloudevents_kafka.cli.terminal.errors import BadUsage, BrokerFailure
from cloudevents_kafka.cli.terminal.signals import Interrupts
from cloudevents_kafka.clients.schema_registry import Patience
from cloudevents_kafka.primitives.plural import pluralize
from cloudevents_kafka.primitives.redaction import mask_url
from cloudevents_kafka.primitives.visible import escape
from cloudevents_kafka.primitives.web import open_url

_WAITS: Final = 6  # timeouts for a whole answer, which may come byte by byte or after redirects
_ANSWER_LIMIT = 1 << 24  # bytes of the list of subjects


def ask_broker(settings: Settings, timeout: float) -> str:
    """Return a text with the address of a cluster, its number of brokers, and its number of topics.

    Raises `BrokerFailure` if no broker of the cluster answers within ``timeout`` seconds.
    """
    from confluent_kafka import Producer

    with Interrupts() as interrupts:
        session = BrokerSession(settings.with_defaults("doctor", {}), timeout, interrupts)
        client = session.create(Producer)
        with session.client_errors():
            for _ in session.poll_until_timeout(client):
                if found := session.metadata(client):
                    counts = pluralize(len(found.brokers), "broker"), pluralize(len(found.topics), "topic")
                    return f"{session.address} answers: {', '.join(counts)}"
        raise session.no_answer()


def ask_registry(url: str, timeout: float) -> str:
    """Return the URL of a schema registry without a login, and the number of subjects in the registry.

    Raises `BrokerFailure` if the server does not answer like a schema registry, and `BadUsage` for a URL that
    is not valid for a registry.
    """
    shown = mask_url(url)
    try:
        subjects = json.loads(Patience(_WAITS * timeout).wait_for(lambda: _read(url, timeout)))
    except HTTPError as error:
        error.close()
        advice = "check the user and the password" if error.code in (401, 403) else "check --registry"
        raise BrokerFailure(
            f"registry {shown} answers {error.code} {escape(error.reason)}; {advice}"
        ) from None
    except InvalidURL:
        raise BadUsage(f"--registry must be a URL such as http://localhost:8081, got {shown}") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or str(error) or type(error).__name__
        raise BrokerFailure(
            f"registry {shown} does not answer: {escape(str(reason))}; check --registry"
        ) from None
    except ValueError:
        subjects = None
    if not isinstance(subjects, list):
        raise BrokerFailure(f"{shown} does not answer as a schema registry; check --registry")
    return f"{shown} answers: {pluralize(len(subjects), 'subject')}"


def _read(url: str, timeout: float) -> bytes:
    """Return the answer of a registry to a request for its list of subjects."""
    with open_url(f"{url.rstrip('/')}/subjects", timeout=timeout, limit=_ANSWER_LIMIT) as answer:
        return answer.read()
