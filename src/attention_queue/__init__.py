"""Attention Queue: a durable work queue per tenant, attended on demand by a few workers."""
