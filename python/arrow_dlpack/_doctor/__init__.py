"""What ``python -m arrow_dlpack`` prints: which libraries are there, and what works with them."""
