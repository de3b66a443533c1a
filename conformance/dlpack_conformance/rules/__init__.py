"""The rules, one module a group."""
