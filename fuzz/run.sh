#!/bin/sh
# Runs each fuzz target of build/fuzz for the given number of seconds. New
# inputs gather in build/fuzz/found, inputs that fail in build/fuzz/failed.
#   fuzz/run.sh 60
set -eu
cd "$(dirname "$0")/.."

for target in build/fuzz/fuzz/*_fuzz; do
  noun=$(basename "$target" _fuzz)
  found=build/fuzz/found/$noun
  failed=build/fuzz/failed/$noun
  mkdir -p "$found" "$failed"
  # Most decoders here read pickles.
  dictionary=fuzz/$noun.dict
  [ -f "$dictionary" ] || dictionary=fuzz/pickle.dict
  printf '\n%s\n' "$noun"
  "$target" -max_total_time="$1" -timeout=10 -print_final_stats=1 \
    -dict="$dictionary" \
    -artifact_prefix="$failed/" "$found" "fuzz/corpus/$noun"
done
