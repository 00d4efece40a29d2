#!/usr/bin/env bash
# Releases: the tag, and the notes, which are CHANGELOG.md's section of the version.
#   scripts/release.sh notes VERSION    prints the notes
#   scripts/release.sh tag              tags HEAD as CMakeLists.txt's version; pushing the tag makes the release (.github/workflows/ci.yml)
set -euo pipefail
cd "$(dirname "$0")/.."
script=release.sh
source scripts/libtorch.sh
if [ "${1:-}" = --help ]; then usage scripts/release.sh && exit; fi

notes() {
  awk -v heading="## [$1]" 'index($0, "## [") == 1 { shown = index($0, heading) == 1; next } shown' CHANGELOG.md
}

case "${1:-}" in
  notes)
    words=$(notes "${2:?notes needs a version}")
    [ -n "$words" ] || refuse "CHANGELOG.md has no section [$2]"
    printf '%s\n' "$words"
    ;;
  tag)
    version=$(sed -n 's/^project(olmo-harness VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    [ -z "$(git status --porcelain)" ] || refuse "commit first: the tag names a commit, and the working tree differs from it"
    grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md || refuse "CHANGELOG.md has no heading '## [$version] - YYYY-MM-DD'"
    if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then refuse "v$version is there already; raise the version in CMakeLists.txt"; fi
    { echo "olmo-harness $version"; echo; notes "$version"; } | git tag --annotate --cleanup=verbatim --file - "v$version"
    echo "tagged v$version; git push origin v$version makes the release"
    ;;
  *) refuse "expected 'notes VERSION' or 'tag'" ;;
esac
