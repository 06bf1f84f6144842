"""What the product costs above the bare engine, measured in one run: ``python -m benchmarks``."""
