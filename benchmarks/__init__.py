"""The measured figures of docs/benchmarks.md; ``python -m benchmarks.run`` writes the page."""
