"""Builds, tests and deploys the jars for Maven: `make maven`, or `python -m release.maven [GOAL]`.

The repository is a folder. From it, Spark loads a jar with `--packages io.github.pyjoinopt:pyjoinopt-shim_2.13:VERSION
--repositories file://DIR`. The version comes from `pyjoinopt/_version.py`, links and contact from `project.ini`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from release import project, versions
from release.project import ROOT

POM = ROOT / "jvm_shim" / "pom.xml"


def command(
    goal: str, repository: Path, owner: project.Project, version: str, scala: str | None = None
) -> list[str]:
    """The command line of Maven. It builds anew: a target folder keeps classes that the source no longer has.

    Args:
        goal: `deploy`, or an earlier phase.
        repository: The folder to deploy to.
        owner: The values of `project.ini`.
        version: The version of the artifacts.
        scala: The binary version of Scala to build for; both if None.
    """
    target = f"dist::{repository.resolve().as_uri()}"
    properties = {"revision": version, **owner.maven(), "altDeploymentRepository": target}
    settings = [f"-D{key}={value}" for key, value in properties.items() if value]
    modules = ["--projects", f"maven/scala-{scala}"] if scala else []
    return ["mvn", "--batch-mode", "--no-transfer-progress", "-f", str(POM), *modules, *settings, "clean", goal]


def main(arguments: list[str] | None = None) -> int:
    """Run Maven; the exit code is Maven's, or 1 if it cannot be started."""
    parser = argparse.ArgumentParser(prog="python -m release.maven", description="Build the jars for Maven.")
    parser.add_argument("goal", nargs="?", default="deploy", help="a phase of Maven (default: deploy)")
    parser.add_argument("--repository", type=Path, default=ROOT / "dist" / "maven", help="the folder to deploy to")
    parser.add_argument("--scala", choices=["2.12", "2.13"], help="only for this version of Scala (default: both)")
    chosen = parser.parse_args(arguments)
    run = command(chosen.goal, chosen.repository, project.read(), versions.current(), chosen.scala)
    try:
        return subprocess.run(run, cwd=ROOT, check=False).returncode
    except FileNotFoundError:
        print("error: there is no mvn on the PATH: install Maven 3.8 or later", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
