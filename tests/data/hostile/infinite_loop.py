"""Never ends and ignores the signal that says so."""

import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
