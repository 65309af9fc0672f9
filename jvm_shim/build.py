"""Build the shim's jars with nothing but a pyspark: ``python jvm_shim/build.py [--spark-home DIR]... [--if-stale]``.

Each Spark named decides by its own Scala version which flavour it builds: Spark 3.5 the one for Scala 2.12,
Spark 4 the one for Scala 2.13. With ``--lint`` a warning of the compiler is an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parent.parent
if (_CHECKOUT / "pyjoinopt").is_dir():
    sys.path.insert(0, str(_CHECKOUT))

from pyjoinopt.bridge.install import compile_scala, jars, java
from pyjoinopt.errors import PyJoinOptError, ShimError

#: What is built for development only: it is never installed.
BUILD = Path(__file__).resolve().parent / ".build"


def build(spark_home: Path, out_dir: Path, if_stale: bool = False, lint: bool = False) -> Path:
    """Compile the flavour that fits a Spark.

    Args:
        spark_home: The folder of a Spark.
        out_dir: Where the jar goes.
        if_stale: Do nothing if the jar there was made from the present source; with `lint` if in addition that source
            was compiled without warnings before.
        lint: Fail if the compiler has a warning.
    Raises:
        ShimError: `spark_home` is no Spark, there is no source for its Scala, or the source has errors.
    """
    jars_dir = spark_home / "jars"
    scala_version = jars.scala_binary_version(jars.scala_version_of(jars_dir))
    sources = jars.shim_sources(scala_version)
    if not sources:
        raise ShimError(f"There is no Scala source for Scala {scala_version} under jvm_shim/src.")
    jar = out_dir / jars.jar_name(scala_version)
    source_hash = jars.shim_source_hash(scala_version)
    linted = BUILD / f"linted_{scala_version}"
    is_linted = linted.is_file() and linted.read_text() == source_hash
    if if_stale and jars.jar_source_hash(jar) == source_hash and (is_linted or not lint):
        print(f"{jar.name}: up to date")
        return jar
    spark_version = "3.5" if scala_version == "2.12" else "4.0"
    started = time.perf_counter()
    compile_scala.compile_shim(
        jars_dir, java.ensure_java(spark_version), sources, jar, source_hash, resources=jars.shim_resources(), lint=lint
    )
    print(f"{jar.name}: {len(sources)} files compiled in {time.perf_counter() - started:.1f} s")
    if lint:
        linted.parent.mkdir(exist_ok=True)
        linted.write_text(source_hash)
    return jar


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Compile pyjoinopt's Scala source against one or more Sparks and pack one jar per Scala version.",
        epilog="example: python jvm_shim/build.py --spark-home .venv-spark35/lib/python3.11/site-packages/pyspark",
    )
    parser.add_argument(
        "--spark-home", action="append", type=Path, metavar="DIR", help="a Spark (default: the installed pyspark)"
    )
    parser.add_argument("--if-stale", action="store_true", help="do nothing for jars that are of the present source")
    parser.add_argument("--lint", action="store_true", help="treat warnings of the compiler as errors")
    parser.add_argument(
        "--out-dir", type=Path, metavar="DIR", default=jars.PACKAGED_JARS, help="where the jars go"
    )
    chosen = parser.parse_args(arguments)
    try:
        homes = chosen.spark_home or [jars.spark_home()]
        for home in homes:
            if home is None:
                raise ShimError("pyspark is not installed here: install it, or name a Spark with --spark-home DIR.")
            build(home, chosen.out_dir, chosen.if_stale, chosen.lint)
    except PyJoinOptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
