#!/usr/bin/env bash
# Solves on a Ray cluster: waits until it has so many nodes, then begins a run, or goes on with it where it is there.
#
#   solve.sh CONFIG RUN HOST:PORT NODES [more options of kilt solve]
#
# CONFIG, RUN and the cards that CONFIG names have to be at the same place on all machines.
set -euo pipefail

if (($# < 4)); then
    echo "usage: solve.sh CONFIG RUN HOST:PORT NODES [more options of kilt solve]" >&2
    exit 2
fi
config=$(realpath -s "$1") run=$(realpath -ms "$2") address=$3 nodes=$4
shift 4
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0

python3 - "$address" "$nodes" "${KILT_WAIT:-600}" <<'PYTHON'
import sys, time
import ray

address, nodes, latest = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
while True:
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        break
    except (ConnectionError, RuntimeError, ValueError) as error:
        if time.monotonic() > latest:
            sys.exit(f"there is no Ray cluster at {address}: {error}")
        time.sleep(1)
while (there := sum(node["Alive"] for node in ray.nodes())) < nodes:
    if time.monotonic() > latest:
        sys.exit(f"{there} of {nodes} nodes have come: see what the others say")
    time.sleep(1)
PYTHON

if [[ -e $run/config.toml ]]; then
    set -- "$run" "$@"
else
    set -- "$config" --out "$run" "$@"
fi
exec kilt solve --engine ray --address "$address" "$@"
