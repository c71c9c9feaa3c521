# Recipes over the commands of CONTRIBUTING.md. `just` lists them.

_default:
    @just --list --unsorted

# Serve with development settings
serve *arguments:
    cargo run -- {{ arguments }}

# Compile without producing a program
check:
    cargo check --locked --all-targets

# What the build after an edit of a handler and of a template takes
edit:
    cargo build --locked
    touch src/web/handlers/runs.rs
    cargo build --locked
    touch templates/runs.html
    cargo build --locked

# Format the code
format:
    cargo fmt

# Lints, as CI runs them
lint:
    cargo clippy --locked --all-targets -- -D warnings

# Spelling and rules for dependencies (typos and cargo-deny must be installed)
hygiene:
    typos --config typos.toml
    cargo deny --locked check bans licenses sources

# An archive of the program for those who deploy it
archive *arguments:
    docs/deploy/archive {{ arguments }}

# The bill of materials, as CycloneDX
sbom:
    mkdir -p target
    docs/deploy/sbom > target/sbom.cdx.json

# Everything that CI does
test:
    tests/run

# Everything but the browser and the documentation
quick:
    tests/run --quick

# Tests of one file in tests/, such as `just one web leases`
one file *filter:
    cargo test --locked --test {{ file }} -- {{ filter }}

# Unit tests, such as `just unit store::`
unit *filter:
    cargo test --locked --lib -- {{ filter }}

# Browser tests
browser:
    cargo build --locked
    cd tests/browser && npm ci --no-audit --no-fund && npm test

# Documentation of the crate
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --open

# Build and lint the GPU form (needs a CUDA toolkit)
gpu:
    cargo clippy --locked --all-targets --features cuda -- -D warnings
    cargo build --locked --release --features cuda

# Compare a GPU with the CPU (needs a card)
device:
    cargo test --locked --features cuda --test device -- --ignored --test-threads 1

# Accept changed snapshots (needs cargo-insta)
snapshots:
    cargo insta review

# Write the measured figures into BENCHMARKS.md
benchmarks:
    cargo run -- dev bench --render
