# Two commands on a fresh machine: make demo, make test. Everything lives in .venv and build.
PYTHON ?= python3
BIN := .venv/bin
RUN := env -u PYTHONPATH -u LD_LIBRARY_PATH -u AMENT_PREFIX_PATH -u CMAKE_PREFIX_PATH -u _ROS_WHEELS_BOOTSTRAP_COMPLETE -u VIRTUAL_ENV -u PYTHONDONTWRITEBYTECODE
CODE := src tests tools launch
# Four processes on two cores: tests of nodes wait half of their time. Each has one thread for linear algebra.
TESTING := $(RUN) OMP_NUM_THREADS=1
PYTEST := $(TESTING) $(BIN)/pytest -n $(or $(WORKERS),4) --dist loadgroup

help: ## what can be made
	@awk -F ":.*## " "/^[a-z-]+:.*## / {printf \"  make %-10s %s\\n\", \$$1, \$$2}" $(MAKEFILE_LIST)

demo: setup ## run the quickstart experiment and write its report
	@$(RUN) $(BIN)/merton demo

test: lint ## lint, types, and all tests
	@$(PYTEST)

quick: lint ## lint, types, and the tests that need no graph, browser or renderer and are short; CHANGED=1: all that a change reaches
ifdef CHANGED
	@$(RUN) $(BIN)/python tools/test/affected_tests.py $(filter-out 1,$(CHANGED)) >build/affected.txt
	@[ ! -s build/affected.txt ] || $(PYTEST) @build/affected.txt
else
	@$(TESTING) $(BIN)/pytest -n $(or $(WORKERS),3) --dist loadgroup -m "not (graph or browser or render or slow)" tests/unit tests/studies
endif

flaky: develop ## run TEST=tests/... again and again, N=20 times, on a busy machine
	@$(RUN) $(BIN)/python tools/test/flaky.py $(or $(N),20) $(TEST)

test-times: develop ## where the time of the tests goes; renews tests/times.json, their order
	@rm -rf build/test_times
	@$(TESTING) PYTHONPATH=tools/test $(BIN)/pytest -p suite_times -n $(or $(WORKERS),4) --dist loadgroup; \
	red=$$?; $(RUN) $(BIN)/python tools/test/suite_times.py build/test_times && exit $$red

setup: ## create .venv with what experiments need
	@PYTHON=$(PYTHON) tools/setup.sh

develop: ## setup, and what models, tests and lint need
	@PYTHON=$(PYTHON) tools/setup.sh all

lint: develop ## ruff and mypy
	@$(RUN) $(BIN)/ruff check $(CODE)
	@$(RUN) $(BIN)/ruff format --check $(CODE)
	@$(RUN) $(BIN)/mypy

bench: develop ## measure; writes build/bench.json and docs/reference/performance.md
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --upgrade --target build/peers -r requirements/bench.txt
	@$(RUN) $(BIN)/python tools/bench/bench.py build/bench.json
	@$(RUN) $(BIN)/python tools/bench/bench_page.py build/bench.json docs/reference/performance.md

# Every extra but lerobot, which wants a torch of its own.
LOCKED := sim serve recording rerun remote models dataset iqa quality lab frame wandb mlflow tensorboard postgres cluster gym curation people

lock: setup ## write requirements/lock.txt from pyproject.toml: what it pins stays if it may; remove it first to pin the newest
	@$(BIN)/pip install -q --disable-pip-version-check $(addprefix -c ,$(wildcard requirements/lock.txt)) uv
	@$(RUN) $(BIN)/uv pip compile --quiet --universal --python-version 3.10 --annotation-style line --custom-compile-command "make lock" \
	  --no-emit-package merton -o requirements/lock.txt pyproject.toml src/merton_studies/pyproject.toml $(addprefix --extra ,$(LOCKED)) \
	  --group pyproject.toml:dev --group pyproject.toml:lock requirements/ros.txt requirements/build.txt

lowest: ## run the loop's quick tests with the lowest versions that pyproject.toml promises, in environments of their own
	@PYTHON=$(PYTHON) tools/lowest.sh

lerobot: ## test the adapter of LeRobot with LeRobot's own classes, in an environment of its own
	@PYTHON=$(PYTHON) tools/lerobot.sh

dist: ## build wheel and source archive of both packages into build/dist, and check them as an index would
	@rm -f build/dist/*.whl build/dist/*.tar.gz
	@$(PYTHON) -m venv build/dist/environment
	@build/dist/environment/bin/pip install -q --disable-pip-version-check build twine
	@for package in . src/merton_studies src/lerobot_policy_merton; do build/dist/environment/bin/python -m build --outdir build/dist $$package || exit 1; done
	@build/dist/environment/bin/twine check --strict build/dist/*.whl build/dist/*.tar.gz

docs: develop ## write the documentation's site: build/docs/index.html
	@$(RUN) $(BIN)/python tools/docs_site.py build/docs

clean: ## remove .venv and build, keep runs
	rm -rf .venv build

.PHONY: help demo test quick flaky test-times setup develop lint bench lock lowest lerobot dist docs clean
