"""What a library is asked to do, one module a library."""
