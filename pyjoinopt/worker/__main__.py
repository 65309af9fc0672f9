"""`python -m pyjoinopt.worker`: what the JVM starts."""

import sys

from pyjoinopt.worker.serve import main

if __name__ == "__main__":
    sys.exit(main())
