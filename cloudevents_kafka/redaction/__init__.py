"""Mask secrets in settings, URLs and texts before they are printed."""

from cloudevents_kafka.redaction._masking import (
    MASK,
    is_secret_name,
    mask_assignments,
    mask_credentials,
    mask_name,
    mask_setting,
    mask_settings,
    mask_url,
    mask_urls,
)

__all__ = [
    "MASK",
    "is_secret_name",
    "mask_assignments",
    "mask_credentials",
    "mask_name",
    "mask_setting",
    "mask_settings",
    "mask_url",
    "mask_urls",
]
