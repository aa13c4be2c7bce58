"""Scores that others measured, sent as archives: packing, checking, the rules."""
