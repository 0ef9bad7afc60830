"""Tokens for SASL OAUTHBEARER that a command prints: for clients, and through a token endpoint for Java.

This package is not needed for client credentials: confluent-kafka and Kafka's Java client fetch tokens of
OpenID Connect by themselves. Read `_token` first (what a command may print), then `_command` (`TokenCommand`,
an ``oauth_cb`` for confluent-kafka) and `_endpoint` (`TokenEndpoint`, for Spark).
"""

from cloudevents_kafka.clients.oauth._command import TokenCommand
from cloudevents_kafka.clients.oauth._endpoint import TokenEndpoint
from cloudevents_kafka.clients.oauth._token import Token, TokenError

__all__ = ["Token", "TokenCommand", "TokenEndpoint", "TokenError"]
