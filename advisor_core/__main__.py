"""``python -m advisor_core`` is the command ``advisor``."""

from advisor_core.cli.main import main

main()
