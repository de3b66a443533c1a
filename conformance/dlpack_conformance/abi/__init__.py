"""What both protocols are in memory, by ctypes."""
