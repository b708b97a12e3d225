# relapse: see README.md. Under make any failure is exit 2; CI reads runs/latest/verdict.json, or calls bin/relapse itself.

NAME   ?=
ARGS   ?=
REPEAT ?= 3

export CGO_ENABLED := 0
SHELL := /bin/bash
# Git refuses to look at a checkout of another user's, and then Go refuses to build. So the program doesn't name its commit there.
ifeq ($(shell git rev-parse HEAD >/dev/null 2>&1 || echo refused),refused)
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
endif
export RELAPSE_ARTIFACTS ?= $(CURDIR)/screenshots

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without the symbol table and what debuggers read (DWARF), which are over a quarter of the program. Stack traces and profiles don't need them: they keep
# functions, files and lines. For a debugger: go build -o bin/relapse ./harness/cmd/relapse
.PHONY: build
build: ## build bin/relapse; without Go the one that is there is used
	@if [ -x bin/relapse ] && ! command -v go >/dev/null; then echo "note: there is no go command on PATH, so bin/relapse is used as it is"; else \
	  $(MAKE) --no-print-directory need-go && mkdir -p bin && go build -trimpath -ldflags='-s -w' -o bin/relapse ./harness/cmd/relapse && \
	  ln -sf relapse bin/kubectl-relapse; fi

.PHONY: need-go
need-go:
	@command -v go >/dev/null || { \
	  echo "error: there is no go command on PATH"; \
	  echo "hint: install Go $$(sed -n 's/^go //p' go.mod) or later: https://go.dev/doc/install"; exit 1; }

# doctor changes nothing unless the probe shows the need; then it says what it changes and how to undo it.
.PHONY: host
host: build
	@bin/relapse doctor >/dev/null 2>&1 || { bin/relapse doctor || true; bin/relapse doctor --fix; }

.PHONY: scenario
scenario: ## reproduce a scenario: make scenario NAME=pleg-deadlock [ARGS=--retain]
	@test -n "$(NAME)" || { echo "error: NAME is not set"; echo "hint: make scenario NAME=pleg-deadlock; bin/relapse list shows all"; exit 1; }
	@$(MAKE) --no-print-directory host
	@bin/relapse run "$(NAME)" $(ARGS)

# $(call part,NAME,COMMAND) runs a part of the tests, keeps what it prints and notes how long it took.
define part
@began=$$(date +%s); { $(2); } 2>&1 | tee -a bin/test.log; status=$${PIPESTATUS[0]}; echo "$$(( $$(date +%s) - began )) s  $(1)" >>bin/times; exit $$status
endef

.PHONY: test
test: build ## unit tests, with the race detector where anything runs at once, CLI scripts, conformance, and an e2e smoke on one real cluster
	@rm -f bin/times bin/test.log
	@$(MAKE) --no-print-directory unit smoke; status=$$?; echo "what each part took:"; cat bin/times; \
	  if [ $$status != 0 ]; then echo "what failed, of bin/test.log:"; grep -aE -e '--- FAIL' -e '^FAIL' -e '\[FAIL' -e '^panic: ' bin/test.log; fi; exit $$status

# A mirror may fail once, and on a machine that has just started something else may hold the package manager's lock.
APT := apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600

# The race detector needs a C compiler.
.PHONY: need-cc
need-cc:
	@command -v gcc >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing a C compiler for the race detector: apt-get install -y gcc libc6-dev"; $(APT) update && $(APT) install -y gcc libc6-dev; \
	  else echo "error: the race detector needs a C compiler"; echo "hint: as root: apt-get install -y gcc libc6-dev"; exit 1; fi; }

# The report is looked at in a real browser. Where CI is set that test has to run; elsewhere it is skipped without one, and nothing is installed unasked.
.PHONY: need-browser
need-browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || command -v google-chrome-stable >/dev/null || command -v chrome >/dev/null || { \
	  if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing a browser for the test of the report: apt-get install -y --no-install-recommends chromium"; \
	    $(APT) update && $(APT) install -y --no-install-recommends chromium; \
	  else echo "note: no browser, so the report is not looked at in one; as root on Debian: apt-get install -y chromium"; fi; }

.PHONY: need-ci
need-ci:
	@missing=$$(for tool in jq curl shellcheck; do command -v $$tool >/dev/null || echo $$tool; done); test -z "$$missing" || { \
	  if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing for the tests of CI's scripts: apt-get install -y" $$missing; $(APT) update && $(APT) install -y $$missing; \
	  else echo "note: CI's scripts are not all tested; as root on Debian: apt-get install -y" $$missing; fi; }

# The race detector makes tests several times slower and finds nothing where nothing runs at once. So it is for packages that start goroutines or hold
# locks (making a value once is not enough), and for conformance, which uses all of them. Conformance waits more than it computes, hence -parallel.
RACY = $$({ grep -rlE '\bgo func|\.Go\(|errgroup\.|sync(\.[^O]|/)|faults\.Each\(' --include='*.go' --exclude='*_test.go' harness internal scenarios fixtures | xargs -n1 dirname; echo harness/conformance; } | sort -u)

# Among the command line's tests these only read, print and refuse, and start the program hundreds of times, which takes the race detector minutes.
ALONE = ^TestMistakesAreRefused$$|^TestAction|^TestScripts$$/^(carried|chaosmesh|complete|docs|explain|history|list|match|mistaken|new|parameters|plan|record|refuse|renamed|schema|usage|validate)$$

# Vet is run once, with all analyzers and with the files that need clusters: go test would run some of them again, for each kind of build.
# A time limit of go test is for a package that hangs. What builds parts of Kubernetes, or runs on a busy machine, takes
# several times as long as usual.
.PHONY: unit
unit: need-go need-cc need-browser need-ci
	@mkdir -p bin
	$(call part,vet,go vet -tags cluster ./...)
	$(call part,unit tests with the race detector,CGO_ENABLED=1 go test -vet=off -race -parallel 6 -timeout 40m -skip '$(ALONE)' $$(go list ./... | grep -xFf <(echo "$(RACY)" | sed 's,^,github.com/kube-relapse/relapse/,')))
	$(call part,other unit tests,go test -vet=off -timeout 40m $$(go list ./... | grep -v /e2e | grep -vxFf <(echo "$(RACY)" | sed 's,^,github.com/kube-relapse/relapse/,')))
	$(call part,unit tests that start the program often,go test -vet=off -timeout 40m -run '$(ALONE)' ./harness/cli)
	$(call part,fixtures that are modules,for m in fixtures/*/go.mod; do (cd "$${m%/go.mod}" && go vet ./... && go test -vet=off -timeout 30m ./...) || exit 1; done)

# What runs on real clusters or the real engine: the tests in files with the build tag. The others of their packages ran with the unit tests.
.PHONY: smoke
smoke: host
	$(call part,providers and node images,image=$$(bin/relapse image) && files=$$(grep -rl '^//go:build .*\bcluster\b' --include='*_test.go' harness internal) && \
	  RELAPSE_NODE_IMAGE=$$image go test -vet=off -tags cluster -count 1 -timeout 75m -run "^($$(grep -ho '^func Test[A-Za-z0-9_]*' $$files | cut -d' ' -f2 | paste -sd '|'))$$" \
	  $$(dirname $$files | sort -u | sed 's,^,./,'))
	$(call part,a module outside,cd e2e/outside && go vet ./... && go test -vet=off -ldflags='-s -w' -count 1 -parallel 5 -timeout 20m .)
	$(call part,e2e smoke,go tool ginkgo run --vet=off --procs 2 --tags cluster --timeout 60m -v --label-filter='!nightly' ./e2e)

.PHONY: nightly
nightly: host ## every scenario, every pair, the true constants, repeated, then make oracle and make specs; goes on with ARGS=--resume
	@status=0; bin/relapse nightly --repeat $(REPEAT) $(ARGS) || status=$$?; bin/relapse oracle || status=$$?; \
	  $(MAKE) --no-print-directory specs || status=$$?; exit $$status

# No container engine is needed, so nothing of the host is looked at.
.PHONY: corpus
corpus: build ## the default pair of every scenario that runs on plain processes, in one table: make corpus [ARGS=--shuffle]
	@bin/relapse run --all --provider processes $(ARGS)

.PHONY: specs
specs: host ## the e2e specs that are too long for make test, and the module outside on kind
	@status=0; (cd e2e/outside && RELAPSE_PROVIDER=kind go test -vet=off -ldflags='-s -w' -count 1 -parallel 5 -timeout 30m .) || status=$$?; \
	  go tool ginkgo run --procs 2 --tags cluster --timeout 3h -v --label-filter=nightly ./e2e || status=$$?; exit $$status

.PHONY: oracle
oracle: host ## candidates with a known answer, of every scenario or of one: make oracle [NAME=pleg-deadlock] [ARGS=unbounded-queue]
	@bin/relapse oracle $(NAME) $(ARGS)

.PHONY: docs
docs: build ## write docs/cli.md from the commands
	@bin/relapse docs markdown docs

.PHONY: release
release: need-go ## make the archives, images and manifests of a release in dist/, without publishing: make release [ARGS=linux/amd64]
	@.ci/release dist $(ARGS)

.PHONY: pages
pages: build need-browser ## open the index and the reports below runs/ in a real browser; screenshots/ keeps pictures
	@bin/relapse report runs
	RELAPSE_RUNS="$(CURDIR)/runs" go test -count 1 -run TestPagesOfRunsInTheBrowser -v ./harness/report

.PHONY: picture
picture: need-go need-browser ## take the README's picture of a report anew, from a run that is kept as test data
	RELAPSE_PICTURE="$(CURDIR)/docs/report.png" CI=1 go test -count 1 -run 'TestPicture$$' -v ./harness/report

.PHONY: bench
bench: host ## ratios: our readers beside known libraries, our clusters beside a bare kind and a bare envtest
	go test -run '^$$' -bench Ratio -benchtime 1x ./harness/evidence/goroutine
	go test -run '^$$' -bench 'Ratio|Updates' -benchtime 3x ./harness/evidence/churn
	go test -run '^$$' -bench Ratio -benchtime 3x ./harness/match
	go test -run '^$$' -bench Ratio -benchtime 20x ./harness/cli
	go test -tags cluster -run '^$$' -bench Ratio -benchtime 3x -timeout 30m ./harness/cluster/processes
	image=$$(bin/relapse image) && RELAPSE_NODE_IMAGE=$$image go test -tags cluster -run '^$$' -bench Create -benchtime 3x -timeout 30m ./harness/cluster/kind

.PHONY: match-cases
match-cases: build ## ask match about evidence whose right answer is known, and print how it answers
	@bin/relapse match --measure harness/match/testdata/cases $(ARGS)

.PHONY: fuzz
fuzz: need-go ## fuzz the readers of evidence, a minute each
	@for t in evidence/goroutine:FuzzRead evidence/goroutine:FuzzRaces evidence/goroutine:FuzzRecoveries evidence/klog:FuzzParse evidence/klog:FuzzReadJournal evidence/heap:FuzzRead evidence/churn:FuzzRead evidence/archive:FuzzWalk evidence/pasted:FuzzRead evidence/profiletext:FuzzRead evidence/stored:FuzzConvert match:FuzzRun scenario:FuzzParse inject/faults:FuzzChaosMesh; do \
	  go test -run '^$$' -fuzz "^$${t#*:}$$" -fuzztime 60s -fuzzminimizetime 5x ./harness/$${t%:*} || exit 1; done

.PHONY: clean
clean: build ## undo what killed runs left
	@bin/relapse clean
