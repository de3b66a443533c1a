"""Correct producers and consumers, whose every call is counted."""
