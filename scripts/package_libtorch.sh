#!/usr/bin/env bash
# Fetches LibTorch, which this package does not hold, into the cache ($OLMO_HARNESS_CACHE, else ~/.cache/olmo-harness), unless it is there.
# It is PyPI's wheel of PyTorch without the 2 GB of GPU libraries that it asks for: 700 MB.
#   olmo-harness-libtorch
# Where PyTorch is there already, nothing has to be fetched: OLMO_LIBTORCH=FOLDER names it, or it is found in the environment.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
script=olmo-harness-libtorch
other_libtorch=OLMO_LIBTORCH=DIR
[ ! -x "$here/python3" ] || python=$here/python3
source "$here/../share/olmo-harness/libtorch.sh"
if [ "${1:-}" = --help ]; then usage "$0" && exit; fi
[ $# -eq 0 ] || refuse "it takes no options; OLMO_HARNESS_CACHE=DIR says where the cache is"
fetch_libtorch "$cache/libtorch-$torch_version"
echo "$cache/libtorch-$torch_version/torch"
