# Two commands do everything on a fresh machine: `make demo` and `make test`. All they install is in .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints/python.txt
export PYTHONHASHSEED := 0
unexport PYTHONDONTWRITEBYTECODE  # else every process of a test, and every worker, compiles all of the sources anew

PAGE := src/hazemap/releases/page/page.html
APP := src/hazemap/studio/app/index.html
TAB := src/hazemap/federated/device/tab/device.html
LICENCES := src/hazemap/bundled_licences.txt
# What web/ builds is copied to these four; its sources, and what npm installs for them.
WEB := $(shell find web -type f -not -path "*/node_modules/*" -not -path "*/dist/*")
MODULES := web/node_modules/.package-lock.json

.PHONY: demo demo-devices demo-recipes demo-two-servers demo-browser demo-studio compare-quick compare-docs results test test-slow check lint docs changelog reference bench mutants constraints clean system studio man sbom dist

demo: .venv/base $(PAGE)  ## Make a city, release it, draw it, ask it three questions (into ./demo)
	$(BIN)/hazemap demo --folder demo

demo-devices: .venv/server  ## A coordinator and 2,000 devices on this machine, until there is a map (in ./demo-devices)
	rm -rf demo-devices
	$(BIN)/hazemap demo devices --folder demo-devices

demo-recipes: .venv/server  ## A server and 1,500 devices with chat: frequent words, intervals, a device's account (in ./demo-recipes)
	rm -rf demo-recipes
	$(BIN)/hazemap demo recipes --folder demo-recipes

demo-two-servers: .venv/server  ## Leader, helper, coordinator and 2,000 devices, until there is a map (in ./demo-two-servers)
	rm -rf demo-two-servers
	$(BIN)/hazemap demo two-servers --folder demo-two-servers

demo-browser: .venv/server $(TAB) system  ## A coordinator, 60 devices and three tabs of Chromium make one map (in ./demo-browser)
	rm -rf demo-browser
	$(BIN)/hazemap demo browser --folder demo-browser --visitors "node web/tab/browser/visitors.mjs"

demo-studio: .venv/server $(PAGE) $(APP)  ## The studio in a browser, on a city of people who do not exist (in ./demo-studio)
	$(BIN)/hazemap demo --folder demo-studio
	$(BIN)/hazemap ledger cap demo 3 --ledger demo-studio/ledger.sqlite
	$(BIN)/hazemap studio demo-studio --ledger demo-studio/ledger.sqlite

EVALUATION := $(wildcard ../shared/data)
COMPARE := $(BIN)/$(if $(EVALUATION),python -m research.compare quick --data $(EVALUATION),hazemap compare quick)
COMPARISONS := quick today gallery federated htf-4 htf-5 htf-6 htf-7 htf-8 htf-10a htf-10b htf-10c htf-10d htf-10e \
  heatmaps-1 heatmaps-2 heatmaps-4 heatmaps-5 heatmaps-6 heatmaps-7 heatmaps-8 heatmaps-10 heatmaps-11 \
  users-means users-cells users-samples users-people users-lengths users-chop users-distributions strange strange-development strange-fresh

compare-quick: .venv/base  ## Every method side by side in ten minutes: tables and figures (in ./comparison/quick)
	$(COMPARE) -o comparison/quick

compare-docs: .venv/test  ## Every comparison there is (hours), and the pages of the documentation that they make
	for name in $(COMPARISONS); do $(BIN)/python -m research.compare $$name --data $(EVALUATION) -o comparison/$$name || exit 1; done
	$(BIN)/python -m research.compare.documentation_page comparison

PAPER_SCRIPTS := heatmap_paper proportions pyramid fixations shuffle_heatmaps national_release city_statistics discovery \
  surat_estimators priors

results: compare-docs  ## Every figure and table of the papers on the evaluation data (hours; never in CI), and their pages
	for script in $(PAPER_SCRIPTS); do $(BIN)/python -m research.benchmarks.$$script || exit 1; done
	$(BIN)/python -m research.papers

LOOPS := $(addprefix tests/,algorithms/published/test_chop_user.py algorithms/test_contribution_selection.py spatial/test_districts.py \
  lab/compare/test_earth_movers_distance.py estimate/test_tree_emd_projection.py tables/test_person_cell_values.py tables/test_sample_grouping.py readers/test_csv_files.py \
  tables/test_table_fingerprint.py tables/test_contribution_bounding.py execution/test_crash_recovery.py federated/protocols/secure_aggregation/test_prime_field.py \
  engines/streaming/test_one_vote_per_person.py engines/test_spark.py estimate/test_tree_least_squares.py federated/protocols/secure_aggregation/test_modular_packing.py \
  federated/aggregator/test_aggregator_routes.py vdaf/test_poplar1.py vdaf/test_prio3.py vdaf/test_field255.py)

test: .venv/test  ## The fast tests and the doctests
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal --doctest-modules tests src research/compare

test-slow: .venv/test .venv/spark .venv-lowest/ready .venv-newest/ready system studio  ## Laws on more examples, statistics, processes, large tables
	HAZEMAP_THOROUGH=1 $(BIN)/python -m pytest -m "not slow" -n 2 tests/laws
	HAZEMAP_THOROUGH=1 $(BIN)/python -m pytest -m slow -n 2 --dist worksteal tests

studio: $(PAGE)  ## The page of a release, the studio, the device in TypeScript and in a tab, another's client of DAP; without npm their tests skip

$(MODULES): web/package.json web/package-lock.json $(wildcard web/*/package.json)
	@if command -v npm >/dev/null; then cd web && npm ci --silent --no-audit --no-fund || \
	echo "what the pages are built with could not be installed"; fi

$(PAGE) $(APP) $(TAB) $(LICENCES) &: $(MODULES) LICENSE src/hazemap/studio/refusals.json $(WEB)
	@if command -v npm >/dev/null; then (cd web && npm run --silent build) && \
	cp web/page/dist/bundle/page.html $(PAGE) && cp web/tab/dist/bundle/device.html $(TAB) && \
	rm -rf $(APP:/index.html=) && cp -r web/studio/dist/bundle $(APP:/index.html=) && \
	cat src/hazemap/base_map/LICENSE-natural-earth.txt > $(LICENCES) && for each in page studio tab; do \
	printf '\n%s\n\n' "$$(printf '=%.0s' $$(seq 80))" && cat web/$$each/dist/bundle/licences.txt || exit 1; done >> $(LICENCES); \
	else echo "npm is not installed"; fi || { rm -f $(LICENCES); \
	echo "what runs in browsers could not be built, so there are no pages, no studio and no device in a tab"; }

FOLDER ?= releases
CHECKED = $(wildcard src/hazemap/$(FOLDER) src/hazemap/$(FOLDER).py)
CHECKED_BY = $(wildcard tests/$(FOLDER) tests/$(dir $(FOLDER))test_$(notdir $(FOLDER))*.py)

check: .venv/test  ## Style, types and fast tests of one folder or module of the package (FOLDER=releases)
	@test -n "$(CHECKED)" || { echo "src/hazemap has no folder and no module '$(FOLDER)': try FOLDER=releases"; exit 2; }
	$(BIN)/ruff check $(CHECKED) $(CHECKED_BY)
	$(BIN)/ruff format --check $(CHECKED) $(CHECKED_BY)
	$(BIN)/mypy -p hazemap.$(subst /,.,$(FOLDER))
	$(BIN)/python -m pytest -m "not slow" --doctest-modules $(CHECKED) $(CHECKED_BY)

lint: .venv/test $(MODULES)  ## Style, types, spelling, import floors, of Python and of TypeScript
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m pytest tests/test_architecture.py
	@if test -e $(MODULES); then cd web && npm run --silent lint; else echo "what checks web/ is not installed: this needs npm"; fi

changelog: .venv/bin/python  ## Move the fragments of changelog.d into CHANGELOG.md (VERSION=0.2.0: as that version)
	$(BIN)/python distribution/changelog.py $(VERSION)

reference: .venv/base  ## What docs/reference/cli takes from the code
	$(BIN)/python docs/cli_reference.py

man: .venv/base  ## A man page for every command (in ./man), which wheels carry
	$(BIN)/python distribution/man_pages.py man

sbom: .venv/base  ## The bill of materials of a wheel and its extra `server`, as CycloneDX (in ./dist)
	mkdir -p dist && $(BIN)/python distribution/software_bill.py dist/hazemap.cdx.json

dist: studio man sbom  ## What a release of hazemap is: wheel, source and bill of materials (in ./dist)
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build --outdir dist

docs: .venv/docs  ## HTML into docs/_build
	$(BIN)/sphinx-build --quiet --fail-on-warning docs docs/_build

SCRIPTS := $(filter-out mutants,$(patsubst research/benchmarks/%.py,%,$(wildcard research/benchmarks/[a-z]*.py)))

bench: .venv/test  ## Us and the peers, side by side; writes research/benchmarks/results/*.json
	for script in $(SCRIPTS); do $(BIN)/python -m research.benchmarks.$$script || exit 1; done

mutants: .venv/mutants  ## Changed lines that no fast test finds out (FILES="privacy/parallel_composition.py" MINUTES=20 SAMPLE=60: a part of them)
	$(BIN)/python -m research.benchmarks.mutants $(FILES) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SAMPLE),--sample $(SAMPLE))

constraints: .venv/test  ## Pin anew what is installed by name
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --upgrade --all-extras --strip-extras --no-header --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host --no-emit-options --output-file constraints/python.txt pyproject.toml

clean:
	rm -rf man dist web/node_modules web/dist web/*/dist $(PAGE) $(TAB) $(LICENCES) src/hazemap/studio/app .venv .venv-lowest .venv-newest .mutants demo demo-devices demo-recipes demo-two-servers demo-studio demo-browser comparison docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv || { apt-get update -qq && apt-get install -qq -y python3-venv && $(PYTHON) -m venv .venv; }

.venv/base: .venv/bin/python pyproject.toml constraints/python.txt
	$(PIP_INSTALL) --editable .
	$(BIN)/hazemap plan --box=13,52,14,53 --people 1000 --epsilon 1 >/dev/null  # compiles the loops, once, into the user's cache
	at="$$(mktemp -d)"; printf 'user,lon,lat,speed\n1,13.4,52.5,9\n' > "$$at/one.csv"; cd "$$at"; $(CURDIR)/$(BIN)/hazemap stats one.csv \
	  --value speed --low 0 --high 9 --box=13,52,14,53 --cells h3:5 --epsilon 1 --ledger ledger -o one.parquet >/dev/null 2>&1
	touch $@

.venv/server: .venv/base
	$(PIP_INSTALL) --editable ".[server]"
	touch $@

.venv/test: .venv/base
	$(PIP_INSTALL) --editable ".[server,lakes,test,lint]"
	$(BIN)/hazemap compare quick --map gaussian-20 -e 1 --repetitions 1 --jobs 1 -o "$$(mktemp -d)" >/dev/null  # loops too
	-$(BIN)/python -m pytest -q -m "not slow" $(LOOPS) >/dev/null  # and those that only tests share, once and not by each worker
	-$(BIN)/python -m pytest -q --collect-only tests >/dev/null  # and the tests themselves
	touch $@

.venv-%/ready: pyproject.toml distribution/dependency_ends.py  # 1.5 GB each; without PyPI their tests skip and say so
	$(PYTHON) distribution/dependency_ends.py $* .venv-$* || echo "the $* versions could not be installed"

.venv/spark: .venv/test  # 400 MB of Spark, and Java; without Java (and without root) its tests skip and say so
	$(PIP_INSTALL) --editable ".[spark]"
	command -v java >/dev/null || [ "$$(id -u)" != 0 ] || { apt-get update -qq && \
	apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless >/dev/null; } || echo "Java could not be installed"
	touch $@

.venv/mutants: .venv/test
	$(PIP_INSTALL) --editable ".[server,lakes,test,mutants]"
	touch $@

.venv/docs: .venv/base
	$(PIP_INSTALL) --editable ".[server,docs]"
	touch $@

system:  # GDAL's own tools open what we write, Chromium shows our page; without them (and without root) those tests skip and say so
	command -v ogrinfo >/dev/null || { [ "$$(id -u)" != 0 ] || { apt-get update -qq && apt-get install -qq -y gdal-bin >/dev/null; }; }
	command -v chromium >/dev/null || [ "$$(id -u)" != 0 ] || { apt-get update -qq && \
	apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || echo "Chromium could not be installed"
	ls /usr/share/postgresql/*/extension/postgis.control >/dev/null 2>&1 || [ "$$(id -u)" != 0 ] || { apt-get update -qq && \
	apt-get install -qq -y --no-install-recommends postgresql-postgis >/dev/null; } || echo "PostGIS could not be installed"
