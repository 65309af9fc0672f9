"""Metadata is in setup.cfg. Only the list of packages is here, because it mixes a search with a moved folder:

the Scala source lies in jvm_shim/ and is installed inside the package, as pyjoinopt/jvm_shim/.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["pyjoinopt", "pyjoinopt.*"]), "pyjoinopt.jvm_shim"],
    package_dir={"pyjoinopt.jvm_shim": "jvm_shim"},
)
