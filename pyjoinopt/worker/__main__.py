"""`python -m pyjoinopt.worker`: the command that the JVM starts."""

import sys

from pyjoinopt.worker.serve import main

if __name__ == "__main__":
    sys.exit(main())
