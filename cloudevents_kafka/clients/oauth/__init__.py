"""SASL OAUTHBEARER tokens that a command prints, for confluent-kafka clients and Java clients.

Java clients fetch the tokens from a token endpoint on the same machine. This package is not needed for OAuth
client credentials, because confluent-kafka and Kafka's Java client themselves fetch tokens with OpenID
Connect. Read `_token` first (what a command may print), then `_command` (`TokenCommand`, an ``oauth_cb`` for
confluent-kafka) and `_endpoint` (`TokenEndpoint`, for Spark).
"""

from cloudevents_kafka.clients.oauth._command import TokenCommand
from cloudevents_kafka.clients.oauth._endpoint import TokenEndpoint
from cloudevents_kafka.clients.oauth._token import Token, TokenError

__all__ = ["Token", "TokenCommand", "TokenEndpoint", "TokenError"]
