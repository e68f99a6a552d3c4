"""Stops itself, as a debugger would, and its children with it."""

import os
import signal

os.fork()
os.kill(os.getpid(), signal.SIGSTOP)
