"""Metadata that does not depend on anything is in setup.cfg. Here is the rest:

* The list of packages mixes a search with a moved folder: the Scala source is in jvm_shim/ and is installed inside
  the package, as pyjoinopt/jvm_shim/.
* Links and contact come from project.ini, and the long description is README.md with its relative links resolved.
"""

import sys
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # a build front end runs this file without its folder on the path

from release import project, readme

namespace: dict[str, str] = {}
exec((ROOT / "pyjoinopt" / "_version.py").read_text(encoding="utf-8"), namespace)
version = namespace["__version__"]
owner = project.read()

setup(
    version=version,
    long_description=readme.long_description(owner, version),
    long_description_content_type="text/markdown",
    packages=[*find_packages(include=["pyjoinopt", "pyjoinopt.*"]), "pyjoinopt.jvm_shim"],
    py_modules=["pyjoinopt_pytest"],
    package_dir={"pyjoinopt.jvm_shim": "jvm_shim"},
    **owner.metadata(version),
)
