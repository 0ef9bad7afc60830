"""Mask secrets in settings, URLs and texts before they are printed.

`_urls` masks credentials in URLs; `_settings` masks the values of settings by name and form.
"""

from cloudevents_kafka.redaction._settings import (
    is_secret_name,
    mask_assignments,
    mask_name,
    mask_setting,
    mask_settings,
)
from cloudevents_kafka.redaction._urls import MASK, has_credentials, mask_credentials, mask_url, mask_urls

__all__ = [
    "MASK",
    "has_credentials",
    "is_secret_name",
    "mask_assignments",
    "mask_credentials",
    "mask_name",
    "mask_setting",
    "mask_settings",
    "mask_url",
    "mask_urls",
]
