# A newcomer only needs `make demo` and `make test`; each target installs its requirements.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
UV := $(BIN)/uv pip
# An active environment of another folder would be installed into otherwise.
INSTALL := UV_COMPILE_BYTECODE=$${UV_COMPILE_BYTECODE:-1} $(UV) install --quiet --python $(BIN)/python
COMPILE := $(UV) compile --quiet --universal --generate-hashes --no-annotate --python-version 3.11 \
	--custom-compile-command "make requirements"
LOCALSTACK := serverless_bench/features/localstack
STACK := serverless_bench/features/aws/stack
CLIENTS := awscrt boto3 minio obstore s3dlio s3torchconnector
CONTRACTS := $(wildcard serverless_bench/features/*/tests/contracts.toml)
PYTEST := $(BIN)/python -m pytest -n 4 --dist loadgroup --no-loadscope-reorder

.PHONY: demo fast test full check lint types contracts docs tables site notebooks faults stores verdicts performance experiments golden stack requirements licences audit mutants findings clean

demo: .venv/run  ## write, read, report and plot on the embedded store
	$(BIN)/sbench demo
	@echo "sbench is in .venv/bin; for this shell: export PATH=\$$PWD/.venv/bin:\$$PATH"

fast: .venv/dev  ## three minutes: checks, unit tests of what changed, the README's commands for a wheel
	$(MAKE) check
	$(PYTEST) $$($(BIN)/python -m tests.selection unit) \
		tests/integration/documents/test_readme.py::test_the_wheel_alone_is_enough_for_the_first_run

test: .venv/dev .venv-sam/ready  ## a quarter of an hour: all tests but the long ones, then those that judge by time
	@$(BIN)/python -m tests.selection
	$(PYTEST) --durations 30 --only-changed -m "not full and not timing"
	$(BIN)/python -m pytest --only-changed -m "timing and not full" $$($(BIN)/python -m tests.selection timing)

full: .venv/dev .venv-sam/ready  ## hours: the long tests; docs/performance-full.md has their figures
	$(BIN)/python -m pytest -m "(full or on_change) and not timing" --timeout 3600
	$(BIN)/python -m pytest -m timing --timeout 3600
	SBENCH_FUZZ_CASES=10000 $(BIN)/python -m pytest -n 2 tests/fuzz --timeout 7200

check: lint types contracts

lint: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/dev
	$(BIN)/mypy

contracts: .venv/dev
	$(BIN)/lint-imports
	$(foreach file,$(CONTRACTS),$(BIN)/lint-imports --no-logo --no-cache --config $(file) &&) true

docs: .venv/dev  ## pictures and tables of the README and docs/, from new runs
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python -m docs.make_page
	$(BIN)/python -m docs.make_overview
	$(BIN)/python -m docs.make_tables

tables: .venv/dev  ## tables of the pages, from code and data
	$(BIN)/python -m docs.make_tables

site: .venv/dev  ## the documentation as HTML in site/html, with the tables made from code and data
	$(BIN)/python -m docs.make_site

notebooks: .venv/dev  ## run the notebooks, and keep their outputs
	$(BIN)/python docs/make_notebooks.py

faults: .venv/dev  ## docs/faults.csv, from a new run of the fault matrix
	$(BIN)/python docs/make_faults.py

stores: .venv/dev  ## docs/stores.csv, from requests to servers; builds two with Go and Rust the first time
	$(BIN)/python docs/make_stores.py

verdicts: .venv/dev  ## docs/verdicts.md and its file of cells, from new runs of rigs: ten minutes; complete only as root on Linux
	$(BIN)/python docs/make_verdicts.py

performance: .venv/dev  ## docs/performance.json, from new runs: 25 minutes on an idle machine
	$(BIN)/python docs/make_performance.py

experiments: .venv/dev  ## the pages of studies, from new runs
	$(BIN)/python docs/make_experiments.py
	$(BIN)/python docs/make_experiments.py --simulate

mutants: .venv/dev  ## mutation tests: plant faults in named functions, and list those that no test finds; up to an hour
	$(BIN)/python -m tests.mutants $(MUTANTS)

findings: .venv/dev  ## undo the repair of each finding, and check that its test fails
	$(BIN)/python -m tests.verdicts.findings $(FINDINGS)

golden: .venv/dev  ## accept the current reports as expected
	$(BIN)/python -m pytest tests/unit/report/test_reporters.py tests/unit/metrics/test_recorded_runs.py tests/integration/documents/test_reports.py --update-golden

.PHONY: dist
dist: .venv/dev  ## a wheel and a source distribution, checked
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m tests.distribution dist

stack: .venv/dev  ## template.yaml and samconfig.toml of this folder, from the package
	cp $(STACK)/samconfig.toml .
	$(BIN)/sbench aws stack .

requirements: .venv/uv
	echo uv | $(COMPILE) - -o requirements/uv.txt
	$(COMPILE) pyproject.toml $(foreach extra,boto3 convert custom frames lambda-host scipy,--extra $(extra)) --group build -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra all --group build --group release --group site --group test -o requirements/dev.txt
	printf 'botocore\ncloudpickle\ncryptography\n' | $(COMPILE) - --constraint requirements/run.txt -o $(STACK)/recipe/function.txt
	$(foreach client,$(CLIENTS),echo $(subst torchconnector,torchconnectorclient,$(client)) | \
		$(COMPILE) - --constraint requirements/dev.txt -o $(STACK)/recipe/$(client).txt &&) true
	printf 'botocore\nclick\ncloudpickle\ncryptography\n' | $(COMPILE) - --constraint requirements/run.txt -o requirements/worker.txt
	printf 'aws-sam-cli==1.170.0\ncfn-lint\nuv\n' | $(COMPILE) - --constraint requirements/uv.txt -o requirements/sam.txt
	printf 'localstack-core[runtime]==4.13.1\nsetuptools\n' | \
		$(COMPILE) - --exclude-newer 2026-02-20 -o $(LOCALSTACK)/4.13.1.txt
	printf 'localstack-core[runtime]==2026.3.0\nsetuptools\n' | \
		$(subst --universal,,$(subst 3.11,3.13,$(COMPILE))) - --exclude-newer 2026-04-15 -o $(LOCALSTACK)/2026.3.0.txt

licences: .venv/dev .venv-sam/ready  ## docs/licences.csv, from the installed packages; names licences that are not allowed
	$(BIN)/python -m requirements.licences

audit: .venv/dev  ## known vulnerabilities of the pinned packages, by OSV's data
	$(BIN)/python -m requirements.advisories

.venv/uv: requirements/uv.txt
	@test -n "$(PYTHON)" || { echo "sbench needs Python 3.11 or newer, with its venv module" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/run .venv/dev: .venv/%: requirements/%.txt pyproject.toml .venv/uv
	$(INSTALL) --require-hashes -r $<
	$(UV) install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q serverless_bench
	@touch $@

# Not compiled: it loads few modules, which are compiled at that time.
.venv-sam/ready: requirements/sam.txt .venv/uv  ## AWS SAM CLI and cfn-lint, whose libraries are not ours
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-sam
	$(UV) install --quiet --python .venv-sam --require-hashes -r $<
	@touch $@

clean:
	rm -rf .aws-sam dist site .venv .venv-sam mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
