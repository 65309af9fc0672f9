"""What builds and checks a release. No part of the package; `setup.py` uses `project` and `readme`.

* `project`: the owner's values in `project.ini`. `readme`: the long description.
* `dist`: `make dist`. `sbom`: the bill of materials. `versions`: the files that repeat the version.
* `maven`: `make maven`. `site`: the documentation by version.
"""
