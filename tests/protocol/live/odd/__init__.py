"""Odd requests: each case sends some to a broker and yields the outcomes, which two brokers must share."""
