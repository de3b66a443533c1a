"""Runs a program that uses gloo, and ends the process without ending its interpreter.

A thread of gloo releases the tensors of a collective some time after the collective is done. If
the interpreter is ending by then, the process aborts: "terminate called without an active
exception", PyTorch's issue 190489. `destroy_process_group` waits for the thread only where no
DistributedDataParallel was made. It happens on a busy machine, and in every second run with
SCHED_IDLE for gloo's threads, whatever else the program imports.
"""

import os
import runpy
import sys

runpy.run_path(sys.argv[1], run_name="__main__")
sys.stdout.flush()
os._exit(0)
