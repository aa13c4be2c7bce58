"""Runs recorded as MCAP: writing without holding anybody up, and reading whatever a crash left."""
