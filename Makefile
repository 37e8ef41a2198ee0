# Two commands are all a newcomer needs: `make demo` and `make test`.
.PHONY: bench demo test lint fmt setup

CARGO ?= cargo

# A server with the docs example in it, and the console on it. ARGS="--size tiny" and the like are handed on.
demo: setup
	$(CARGO) run --release --locked --quiet --bin rowdeck -- demo $(ARGS)

# Every scenario on the demo's `dev` size, a minute each, with a page of the results in bench/results/.
bench: setup
	./scripts/bench.sh

# Everything that must hold before a change is merged. The runner's own closing line comes last.
test: setup
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
		$(CARGO) nextest run --locked --no-fail-fast; \
	else \
		$(CARGO) test --locked --no-fail-fast; \
	fi

lint:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

fmt:
	$(CARGO) fmt

# Installs a PostgreSQL server (15 to 18) where there is none.
setup:
	@./scripts/setup.sh
