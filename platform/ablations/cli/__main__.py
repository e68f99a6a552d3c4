"""Runs `platform` as `python -m ablations.cli`."""

from ablations.cli import main

main()
