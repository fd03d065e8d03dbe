# Shared by quickstart, check and tools/install-packages; sourced, never run.

say() { printf '== %s\n' "$*"; }

fail() {  # fail STATUS MESSAGE: the one form of an error, as the program itself has it
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

# need_value OPTION COUNT: an option's value must follow it.
need_value() { [ "$2" -ge 2 ] || fail 2 "$1: a value must follow; see --help"; }

# quietly LABEL COMMAND...: one line and the time it took; the command's whole output only when it fails.
quietly() {
  local label=$1 started=$SECONDS log status=0
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    cat "$log" >&2
    rm -f "$log"
    fail 1 "$label: '$*' failed with status $status"
  fi
  rm -f "$log"
  say "$label: done in $((SECONDS - started)) s"
}

# retry TIMES COMMAND...: networks fail for moments.
retry() {
  local times=$1 attempt=1
  shift
  until "$@"; do
    [ "$attempt" -lt "$times" ] || return 1
    sleep $((attempt * 5))
    attempt=$((attempt + 1))
  done
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1
  shift
  quietly "configure ($preset)" cmake --preset "$preset"
  say "build ($preset): ${*:-everything}, $(nproc) jobs"
  cmake --build --preset "$preset" --parallel "$(nproc)" ${1:+--target "$@"} || fail 1 "build ($preset): failed; the compiler's messages stand above"
}
