#!/usr/bin/env bash
# The pictures of docs/watch.md: serves a folder of runs and takes docs/serve-runs.png and docs/serve-run.png with Chromium, and
# docs/watch.png of what `runs watch` shows of two of them in a terminal (tmux).
#
#   scripts/serve_pictures.sh [--binary FILE] FOLDER [RUN [FIRST SECOND]]
#
# FOLDER holds runs, such as those of scripts/quickstart.sh; RUN is the name of the one whose page is shown (else the latest). FIRST
# and SECOND are two of its folders; without them the picture of the terminal stays as it is.
set -euo pipefail
script=serve_pictures.sh
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/libtorch.sh"
if [ "${1:-}" = --help ]; then usage "$root/scripts/$script" && exit; fi
binary=$root/build/release/olmo-harness
if [ "${1:-}" = --binary ]; then binary=$2; shift 2; fi
folder=${1:-}
[ -d "$folder" ] || refuse "expected a folder of runs, got \`$folder\`"
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
  refuse "no Chromium is installed (Debian: apt-get install chromium)"

binary=$(realpath "$binary") output=$(mktemp)
cd "$folder/.."  # the page shows the folder as it was named
"$binary" serve "$(basename "$folder")" --port 0 >"$output" 2>/dev/null &
server=$!
trap 'kill "$server"; rm -f "$output"' EXIT
for _ in $(seq 100); do [ -s "$output" ] && break; sleep 0.1; done
address=$(cat "$output")
[ -n "$address" ] || fail "the server does not begin"

picture() {  # FILE WIDTH,HEIGHT ADDRESS
  "$browser" --headless --no-sandbox --hide-scrollbars --force-color-profile=srgb --window-size="$2" \
    --virtual-time-budget=4000 --screenshot="$1" "$3" >/dev/null 2>&1
  echo "$1: $(stat -c %s "$1") bytes"
}

key=$(python3 -I - "${address}api/runs" "${2:-}" <<'EOF'
import json, sys, urllib.request
runs = json.load(urllib.request.urlopen(sys.argv[1]))["runs"]
print(next(run["key"] for run in runs if sys.argv[2] in ("", run["name"])))
EOF
)
picture "$root/docs/serve-runs.png" 1100,560 "$address"
picture "$root/docs/serve-run.png" 1000,900 "${address}run/$key"

[ $# -ge 4 ] || exit 0
command -v tmux >/dev/null || { echo "$script: no tmux is installed (Debian: apt-get install tmux)" >&2; exit 2; }
page=$(mktemp --suffix=.html)
terminal=(tmux -L "pictures-$$" -f /dev/null)
trap '"${terminal[@]}" kill-server; kill "$server"; rm -f "$output" "$page"' EXIT
LC_ALL=C.UTF-8 "${terminal[@]}" new-session -d -x 112 -y 32 -- "$binary" runs watch "$(basename "$folder")/$3" "$(basename "$folder")/$4"
sleep 5
"${terminal[@]}" capture-pane -e -p | python3 -I -c '
import html, re, sys
COLOURS = {"36": "#4cc3e0", "33": "#e8b04a"}  # of the first and the second curve
text = ""
for piece in re.split("(\x1b\\[[0-9;]*m)", sys.stdin.read().rstrip("\n")):
    code = re.fullmatch("\x1b\\[([0-9;]*)m", piece)
    if code:
        text += "</span><span style=color:" + COLOURS.get(code[1], "inherit") + ">"
    else:  # braille comes from a font whose characters have another width
        text += re.sub("[\u2800-\u28ff]", lambda dots: "<b>" + dots[0] + "</b>", html.escape(piece))
print("<!DOCTYPE html><meta charset=utf-8><style>b{display:inline-block;width:1ch;height:17px;overflow:hidden;font-weight:400;vertical-align:top}"
      "body{margin:16px 18px;background:#1b1e23;color:#e2e5e8}pre{margin:0;font:14px/17px \"DejaVu Sans Mono\",monospace}</style>"
      "<pre><span>" + text + "</span></pre>")' >"$page"
picture "$root/docs/watch.png" 980,575 "file://$page"
