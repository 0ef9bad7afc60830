"""SASL OAUTHBEARER tokens that a command prints, for confluent-kafka clients and Java clients.

Java clients fetch the tokens from a token endpoint on the same machine. For OAuth client credentials, this
package is not needed: confluent-kafka and Kafka's Java client themselves fetch tokens with OpenID Connect.
Read the modules in this order: `_token` defines which output of a command is valid. `_command` contains
`TokenCommand`, an ``oauth_cb`` for confluent-kafka. `_endpoint` contains `TokenEndpoint`, which serves tokens
to Spark.
"""

from cloudevents_kafka.clients.oauth._command import TokenCommand
from cloudevents_kafka.clients.oauth._endpoint import TokenEndpoint
from cloudevents_kafka.clients.oauth._token import Token, TokenError

__all__ = ["Token", "TokenCommand", "TokenEndpoint", "TokenError"]
