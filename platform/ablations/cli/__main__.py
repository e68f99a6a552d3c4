"""`python -m ablations.cli`, the same as `platform`."""

from ablations.cli import main

main()
