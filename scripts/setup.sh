#!/usr/bin/env bash
# Makes sure that there is what rowdeck needs: a Rust toolchain (it only says so when it is missing), a C compiler to
# link with, and the programs of a PostgreSQL server, 15 to 18 (it installs the system's packages when there are none).
# It starts no server and makes no database. Running it again does nothing.
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

# The folders that hold a server's programs, the same that rowdeck looks in.
server_folders() {
    if [ -n "${ROWDECK_PG_BIN:-}" ]; then
        printf '%s\n' "$ROWDECK_PG_BIN"
        return
    fi
    if command -v pg_config >/dev/null 2>&1; then pg_config --bindir; fi
    printf '%s\n' "${PATH//:/$'\n'}"
    local folder
    for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/lib/postgresql*/bin /usr/libexec/postgresql* \
        /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin \
        /Applications/Postgres.app/Contents/Versions/*/bin /usr/local/pgsql/bin; do
        printf '%s\n' "$folder"
    done
}

server_found() {
    local folder major
    while IFS= read -r folder; do
        if [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ]; then
            major=$("$folder/postgres" --version 2>/dev/null | sed -nE 's/.*\) ([0-9]+).*/\1/p')
            if [ -n "$major" ] && [ "$major" -ge 15 ] && [ "$major" -le 18 ]; then return 0; fi
        fi
    done < <(server_folders)
    return 1
}

# Runs a command as root: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        say "something is missing, and installing it takes root: run \"$*\" as root, then this again"
        exit 1
    fi
}

install_server() {
    say "no PostgreSQL server (15 to 18) found; installing one"
    if command -v brew >/dev/null 2>&1; then
        brew install postgresql@17 >&2
    elif command -v apt-get >/dev/null 2>&1; then
        # The package would make a cluster and start it; only its programs are wanted.
        as_root mkdir -p /etc/postgresql-common/createcluster.d
        printf 'create_main_cluster = false\n' |
            as_root tee /etc/postgresql-common/createcluster.d/rowdeck.conf >/dev/null
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >&2
    elif command -v dnf >/dev/null 2>&1; then
        as_root dnf install -y -q postgresql-server postgresql-contrib >&2
    elif command -v zypper >/dev/null 2>&1; then
        as_root zypper --non-interactive install postgresql-server >&2
    elif command -v pacman >/dev/null 2>&1; then
        as_root pacman -S --noconfirm --needed postgresql >&2
    elif command -v apk >/dev/null 2>&1; then
        as_root apk add --quiet postgresql >&2
    else
        say "install a PostgreSQL server (15 to 18) with your system's packages, then run this again"
        exit 1
    fi
    if ! server_found; then
        say "the package is installed, and there is still no server from 15 to 18; set ROWDECK_PG_BIN to its folder"
        exit 1
    fi
}

if ! command -v cargo >/dev/null 2>&1; then
    # A toolchain that rustup installed a moment ago is not yet on this shell's PATH.
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
        say "add $HOME/.cargo/bin to PATH, then run this again"
    else
        say "there is no Rust toolchain; install one from https://rustup.rs, then run this again"
    fi
    exit 1
fi
if ! command -v cc >/dev/null 2>&1; then
    say "no C compiler (cc) found; installing one"
    if command -v apt-get >/dev/null 2>&1; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends gcc libc6-dev >&2
    elif command -v dnf >/dev/null 2>&1; then
        as_root dnf install -y -q gcc >&2
    else
        say "install gcc or clang, then run this again"
        exit 1
    fi
fi
server_found || install_server
