# Everything runs from a virtual environment that make builds by itself.
# Needed beforehand: make, bash and a Python. Works with GNU make 3.81 (macOS) and up.

SHELL := /bin/bash
# Each of the many processes of the tests would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
NEWEST := .venv-newest
LATER := .venv-later
DOCS := .venv-docs
PY := $(VENV)/bin/python
# PySpark 4.0 has wheels of its companions for these; the library itself runs on later ones too.
PYTHONS := python3 python3.13 python3.12 python3.11
# The oldest and the newest PySpark for which Kafka's connector, Delta and Iceberg are in Maven Central;
# for 4.2.0 there is Kafka's connector only.
PYSPARK := pyspark==4.0.0
PYSPARK_LATER := pyspark==4.1.1
EXTRAS := spark,cli,protobuf,protocol,metrics,report,testing,tracing,readers

# `make check` installs no Spark; the other commands install all.
LIGHT := cli,protobuf,protocol,metrics,report,testing,tracing
# The first pip that knows dependency groups; a new environment has that of its Python.
PIP := pip>=25.1
INSTALLED := $(VENV)/.installed
CHECKED := $(if $(wildcard $(INSTALLED))$(filter-out check lint rewritten,$(MAKECMDGOALS)),$(INSTALLED),$(VENV)/.light)
# More workers than cores, as many tests wait for sockets and processes; each collects all tests, in 7 CPU seconds.
WORKERS := 6

.PHONY: help check test report test-newest test-later release soak peers lint jar demo bench docs docs-serve pictures ready classes rewritten lint-and-rewrite legacy clean

help:
	@echo "make check        lint, types, and most tests that need no broker and no Spark: 2 minutes"
	@echo "make test         lint, types and all tests but the longest, with a real Kafka and Spark: 6 minutes"
	@echo "make report       write spec-conformance/report.md and records.json, after make test"
	@echo "make release      what takes too long for each change: long tests and fuzzing, the newest PySpark,"
	@echo "                  the peers, the wheel on each Python: some hours; RELEASE_FLAGS=--list prints the steps"
	@echo "make test-newest  Spark's functions on the newest PySpark"
	@echo "make test-later   Spark's tests and the demo on the newest PySpark that has Kafka, Delta and Iceberg"
	@echo "make soak         members of groups through signals and outages, with each loop and client; 200 kills of"
	@echo "                  processors and brokers while events are forwarded exactly once, then 50 of"
	@echo "                  drivers, Java, workers, executors and brokers while pipelines land records;"
	@echo "                  SOAK_FLAGS=\"--kills 100 --seed 7\""
	@echo "make peers        events exchanged with the SDKs for Java, JavaScript, Go, Python, Rust"
	@echo "make jar          compile the Java function of decode_events into the package"
	@echo "make demo         the library at work on a local Kafka"
	@echo "make bench        measure against the alternatives"
	@echo "make docs         build the documentation site into build/site, strictly"
	@echo "make docs-serve   show it on 127.0.0.1:8000, and build it again when a page changes"
	@echo "make pictures     draw the pictures of docs/assets from the code and the benchmarks' tables"
	@echo "make lint         ruff, prose, mypy and import contracts only"
	@echo "make INSTALL_JDK=0 …  the same, without downloading a Java where none is found"
	@echo "make clean        remove the virtual environment and what tools left (not the jar cache)"

# The results of make test, which make report reads.
RESULTS := build/tests.xml

# Fewer examples of each property than by pytest alone. BUDGET is what the tests may take, in seconds.
BUDGET := 330
test: $(INSTALLED) ready classes lint-and-rewrite
	@EXAMPLES=$${EXAMPLES:-0.1} $(PY) -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --one-broker \
	    --quick-spark --budget $(BUDGET) --durations 10 --durations-min 1 --junitxml=$(RESULTS) $(PYTEST_FLAGS)

# With it each of the many Sparks of the tests starts in half the CPU time. The modules are compiled once, as
# each worker of the tests would do it.
classes: ready
	@$(PY) -m cloudevents_kafka.spark.pipeline.session >/dev/null
	@$(PY) -m compileall -q cloudevents_kafka spec-conformance

# pytest rewrites the assertions of each test module. In a new tree each worker would do so for all modules.
rewritten:
	@[ -n "$$(find tests -name '*-pytest-*.pyc' -print -quit)" ] || for part in 0 1; do \
	    $(PY) -m pytest --collect-only -qq $$(ls -d tests/*/ tests/test_*.py | awk "NR % 2 == $$part") >/dev/null & \
	done; wait

# From the results of the last make test.
report: $(INSTALLED)
	@$(PY) spec-conformance clauses --results $(RESULTS) \
	    --report spec-conformance/report.md --records spec-conformance/records.json

# Tests of the project's tools, of pages and of whole programs, a third of the time; `make test` runs them.
TOOL_TESTS := tests/cli/terminal/test_streams.py tests/cli/test_terminal.py tests/conformance tests/docs tests/fuzz \
    tests/jvm tests/peers tests/primitives/redaction/test_linear.py tests/protocol/records/test_unpacked.py \
    tests/test_distribution.py tests/test_function_calls.py tests/test_linear_work.py tests/test_load.py \
    tests/test_mutants.py tests/test_page_facts.py tests/test_prose.py tests/test_reading_differences.py \
    tests/test_release.py tests/test_slow_path.py tests/test_threads.py tests/test_typing.py tests/wire_broker

# As many examples of each property as `make test` tries.
check: $(CHECKED) lint-and-rewrite
	@EXAMPLES=$${EXAMPLES:-0.1} $(PY) -m pytest -n $(WORKERS) --dist worksteal $(TOOL_TESTS:%=--ignore=%) \
	    -m "not broker and not spark and not legacy and not peer and not release" $(PYTEST_FLAGS)

# mypy uses one core.
lint-and-rewrite:
	@$(MAKE) --no-print-directory -j 2 lint rewritten

lint: $(CHECKED)
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check . || { echo "not formatted: run $(VENV)/bin/ruff format" >&2; exit 1; }
	@$(PY) .ci/prose.py
	@$(PY) -m mypy
	@output=$$($(VENV)/bin/lint-imports --no-logo 2>&1) || { echo "$$output"; exit 1; }

# In another environment, without the pipeline: the newest PySpark, which the extra spark does not allow,
# may have no connector for Kafka.
test-newest: $(INSTALLED)
	@$(call environment,$(NEWEST))
	@echo "installing the newest PySpark into $(NEWEST)"
	@$(NEWEST)/bin/pip install --quiet --disable-pip-version-check --upgrade -e '.[cli,protobuf,testing]' \
	    --group test pyspark pandas pyarrow
	@$(NEWEST)/bin/python -m pytest tests/spark --ignore tests/spark/pipeline \
	    --ignore tests/spark/test_connector.py $(PYTEST_FLAGS)

# In another environment, with the pipeline, its tables and the demo.
test-later: ready
	@$(call environment,$(LATER))
	@echo "installing $(PYSPARK_LATER) into $(LATER)"
	@$(LATER)/bin/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]' --group test '$(PYSPARK_LATER)'
	@$(LATER)/bin/python -m cloudevents_kafka.spark.connector >/dev/null
	@$(LATER)/bin/python -m cloudevents_kafka.spark.table_formats >/dev/null
	@$(LATER)/bin/python -m pytest tests/spark $(PYTEST_FLAGS)
	@$(LATER)/bin/cloudevents-kafka demo $(DEMO_FLAGS)

# Each step runs whether or not another fails; RELEASE_FLAGS names steps, minutes and a seed.
release: $(INSTALLED)
	@$(PY) .ci/release.py $(RELEASE_FLAGS)

soak: ready
	@$(PY) -m tests.support.load $(SOAK_FLAGS)
	@$(PY) -m tests.support.soak_processor $(SOAK_FLAGS)
	@$(PY) -m tests.spark.pipeline.soak $(SOAK_FLAGS)

# Each in the version that spec-conformance/peers pins, by the toolchains that are here.
peers: ready
	@$(PY) spec-conformance/peers $(PEERS_FLAGS)

# After a change in java.
jar: $(INSTALLED)
	@$(PY) .ci/jar.py

demo: ready
	@$(VENV)/bin/cloudevents-kafka demo $(DEMO_FLAGS)

bench: ready
	@$(PY) benchmarks $(BENCH_FLAGS)

# The site needs the package with its command line, and none of the tests' packages.
docs: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

docs-serve: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs serve --livereload --dev-addr 127.0.0.1:8000

$(DOCS)/.installed: pyproject.toml | $(VENV)/.made
	@$(call environment,$(DOCS))
	@echo "installing the packages of the documentation into $(DOCS)"
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check -e '.[cli]' --group docs
	@touch $@

pictures: $(INSTALLED)
	@$(PY) .ci/pictures

# Java, Kafka's jars, a prepared broker, Spark's connector and table formats: a second when all is there.
# Where neither a Java is found nor apt can install one, it is downloaded, unchecked; to have none of
# that: make INSTALL_JDK=0.
INSTALL_JDK := 1
ready: $(INSTALLED)
	@$(PY) .ci/java.py $(if $(filter 0,$(INSTALL_JDK)),,--download) >/dev/null
	@$(PY) -m cloudevents_kafka.testing >/dev/null
	@$(PY) -m cloudevents_kafka.spark.connector >/dev/null
	@$(PY) -m cloudevents_kafka.spark.table_formats >/dev/null

# The old brokers, which only tests need.
legacy: ready
	@$(PY) -m tests.support.old_brokers

$(INSTALLED): pyproject.toml Makefile | $(VENV)/.made
	@echo "installing packages into $(VENV) (the first time some minutes: PySpark is 430 MB)"
	@$(call install,-e '.[$(EXTRAS)]' --group test '$(PYSPARK)')
	@touch $@

$(VENV)/.light: pyproject.toml Makefile | $(VENV)/.made
	@echo "installing packages into $(VENV), without Spark"
	@$(call install,-e '.[$(LIGHT)]' --group test)
	@touch $@

# An environment at a path, with a pip that knows dependency groups.
environment = [ -x $(1)/bin/pip ] || $(PY) -m venv $(1); $(call new_pip,$(1)/bin/python)
new_pip = $(1) -m pip install --quiet --disable-pip-version-check '$(PIP)'
install = set -o pipefail; $(call new_pip,$(PY)) && \
	    $(PY) -m pip install --disable-pip-version-check --progress-bar off $(1) 2>&1 \
	    | { grep --line-buffered -E '^ *(Downloading .*MB|Building wheel|Installing coll|Successfully|ERROR|error)' \
	        | cut -c1-100 || true; }

$(VENV)/.made:
	@python=; for candidate in $(PYTHONS); do \
	    if "$$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; \
	    then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "make needs Python 3.11, 3.12 or 3.13; looked for: $(PYTHONS); python3 is: $$(python3 -V 2>&1)." >&2; \
	    echo "Install one (Debian 12, Ubuntu 24.04: apt install python3 python3-venv; macOS: brew install python@3.13)." >&2; \
	    exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "installing python3-venv with apt"; \
	        apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null; \
	    else \
	        echo "$$python cannot make virtual environments; Debian, Ubuntu: sudo apt install python3-venv" >&2; \
	        exit 1; \
	    fi; \
	fi; \
	[ -x $(PY) ] && $(PY) -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) $(NEWEST) $(LATER) $(DOCS) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache \
	    spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
