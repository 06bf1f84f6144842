"""MarketHub, an example: a thousand shops share a few workers, and one of them is very noisy.

``hub``, ``api`` and ``worker`` are the application, in this order; the rest is the demo around it.
"""
