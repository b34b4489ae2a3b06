# make demo   sets everything up and makes a private synthetic table with its ledger and report
# make test   sets everything up and runs formatter, linter, type checker and the quick tests
# make test-slow   the tests that take seconds each, and those of dpsynth/research; CI runs them after `make test`
# make search   runs the whole test suite with fresh randomness and more examples; a find becomes a fixed case
# make test-numpy2   nine fits and the quick tests of arithmetic, without TensorFlow Privacy, as Python 3.12 has it
# make docs   builds the site, site/index.html; a warning is an error
# make wheel   builds sdist and wheel in dist/ and tries the wheel in a clean environment without TensorFlow
# make dist    the same, with the versions that were tried (requirements.lock) and a software bill of materials
#              (CycloneDX, sbom.cdx.json) beside them in dist/
# make audit   asks PyPI about known vulnerabilities of what is installed (pip-audit)
# make mutants   puts each known fault into a copy of the package and sees that its tests fail; keeps the table
# make mutants-changed   40 mutants of the rooms that have changed since that table, each commit others
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Modules are compiled once, not by each of the many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow search test-numpy2 docs wheel dist audit mutants mutants-changed check numpy2 clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	rm -rf runs/demo runs/demo.ledger  # the table is public: nobody's privacy was spent on an earlier demo
	$(BIN)/dpsynth run support2 --out runs/demo

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "slow or research" -n 2 --dist worksteal

search: $(VENV)/.installed-test
	DPSYNTH_TEST_RANDOMNESS=fresh OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "" -n 2 --dist worksteal

$(VENV)-numpy2/.installed: tests/constraints-numpy2.txt
	$(PYTHON) -m venv --clear $(VENV)-numpy2
	$(VENV)-numpy2/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $< -e .
	@touch $@

numpy2: $(VENV)-numpy2/.installed

# What has arithmetic of its own. Pages, runs, commands and documents are the same with either version, and the nine
# fits of tests/behaviour go through the rest of the package.
COMPUTING := dpsynth $(addprefix tests/,table studies marginals wgan evaluation \
  $(addprefix privacy/test_,contract.py exact_draws.py noise.py profile.py tradeoff.py))

test-numpy2: numpy2
	OMP_NUM_THREADS=1 $(VENV)-numpy2/bin/python -m pytest tests/behaviour -m "" -n 2
	OMP_NUM_THREADS=1 $(VENV)-numpy2/bin/python -m pytest $(COMPUTING) -n 2 --dist worksteal

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(BIN)/python
	rm -rf build dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build > /dev/null
	$(PYTHON) -m venv --clear $(VENV)-wheel
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-light.txt
	$(VENV)-wheel/bin/python -m pip install --quiet --disable-pip-version-check --no-deps dist/*.whl
	$(VENV)-wheel/bin/python tests/installed_wheel.py

dist: wheel
	$(VENV)-wheel/bin/python -m pip freeze --disable-pip-version-check --exclude dpsynth-health > dist/requirements.lock
	$(PYTHON) -m venv --clear $(VENV)-sbom
	$(VENV)-sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom
	$(VENV)-sbom/bin/cyclonedx-py environment --output-file dist/sbom.cdx.json $(VENV)-wheel/bin/python

audit: $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(VENV)-audit/bin/pip-audit --path $(VENV)/lib/python3.*/site-packages --skip-editable

mutants: $(VENV)/.installed-test
	$(BIN)/python tests/mutants/run.py --keep

mutants-changed: $(VENV)/.installed-test
	$(BIN)/python tests/mutants/run.py --changed --most 40

clean:
	rm -rf $(VENV) $(VENV)-numpy2 $(VENV)-wheel $(VENV)-sbom $(VENV)-audit build dist site runs *.egg-info
