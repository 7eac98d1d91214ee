#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command in the documentation is run by a test.  In docs/guide that is tests/e2e/scenarios/80-docs.sh, which runs
# the ```sh blocks of the guide and of the README unchanged.  For all other commands, commands.txt names the test that runs
# them.  A command without a line there is an error, as is a line whose test no longer has the command.  Paths of the
# repository that a page names must exist.
#
#   run.sh [PAGE...]   the pages to check; the pages below when none is named
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- README.md docs/*.md docs/guide/*.md
table=tests/docs/commands.txt
bad=0

# prints "page<TAB>block's kind<TAB>command" for each line in a fenced block that begins with a program; joins continued lines
commands() {
  awk '
    FNR == 1 { open = 0; line = "" }
    /^ *```/ { open = !open; kind = $0; sub(/^ *```/, "", kind); line = ""; next }
    !open || kind !~ /^(sh|bash|console)?$/ { next }
    { line = line $0 }
    line ~ /\\$/ { sub(/ *\\$/, " ", line); next }
    {
      sub(/^ +/, "", line); sub(/  +#.*/, "", line); gsub(/  +/, " ", line)
      if (line ~ /^([A-Z_]+=[^ ]* )*(make|kubectl|helm|muster|docker|podman|kind|ctr|git|python3?|sed|curl|(build\/bin|tests|tools|bench|deploy)\/[^ ]+)( |$)/)
        print FILENAME "\t" (kind == "" ? "-" : kind) "\t" line
      line = ""
    }' "$@"
}

n=0
while IFS=$'\t' read -r page kind command; do
  n=$((n + 1))
  [ "$page $kind" = 'README.md sh' ] && continue
  if [[ $page = */guide/* ]]; then
    # 80-docs.sh does not run the guide's list of pages, so its commands count as those of other pages
    [ "$kind" = sh ] && [[ $page != */guide/README.md ]] && continue
    echo "$page: '$command' is in a block that is not run: begin it with \`\`\`sh"
    bad=1
    continue
  fi
  known=
  while IFS='|' read -r prefix _; do
    prefix=${prefix%"${prefix##*[! ]}"}
    case $prefix in '' | '#'*) continue ;; esac
    [[ $command = "$prefix"* ]] && known=yes
  done <"$table"
  [ -n "$known" ] || { echo "$page: no test runs '$command': write one, and a line in $table"; bad=1; }
done < <(commands "$@")

trim() { sed 's/^ *//; s/ *$//' <<<"$1"; }
while IFS='|' read -r prefix file pattern; do
  prefix=$(trim "$prefix") file=$(trim "${file:-}") pattern=$(trim "${pattern:-}")
  case $prefix in '' | '#'*) continue ;; esac
  if [ ! -e "$file" ]; then
    echo "$table: '$prefix' is run by $file, which is not there"
    bad=1
  elif ! grep -qE -- "$pattern" "$file"; then
    echo "$table: '$prefix' should be run by $file, which has no '$pattern'"
    bad=1
  fi
done <"$table"
# paths of the repository in backticks; <name> matches anything, [ch] either letter
while IFS=: read -r page path; do
  pattern=$(sed 's/<[^>]*>/*/g; s/\[\.\]/./g' <<<"$path")
  compgen -G "${pattern%/}" >/dev/null || [ -e "$path.c" ] || { echo "$page: there is no $path"; bad=1; }
done < <(grep -oHE '`(lib|task|client|cli|operator|tests|tools|docs|bench|proto|deploy|charts|examples)/[][A-Za-z0-9_./*<>-]*`' "$@" CONTRIBUTING.md | tr -d '`' | sort -u)

[ "$n" -gt 0 ] || { echo 'no command was found at all'; bad=1; }
[ "$bad" = 0 ] && printf '  ok       docs: %d commands, each run by a test\n' "$n"
exit "$bad"
