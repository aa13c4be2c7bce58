"""Scores that manufacturers measured and send as archives: packing, checks, rules."""
