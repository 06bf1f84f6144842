"""Numbered migrations, a folder per engine."""
