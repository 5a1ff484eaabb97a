#!/usr/bin/env bash
# Makes this machine a node of a Ray cluster that kilt solves on, and stays until it is ended (Ctrl-C).
#
#   node.sh --head --port 6379          on the first machine
#   node.sh --address HOST:6379         on each of the others
#
# Further options go to `ray start`, such as --num-cpus, --memory (bytes) or --temp-dir.
# The token in ~/.ray/auth_token has to be the same on all machines, or that of RAY_AUTH_TOKEN_PATH or RAY_AUTH_TOKEN.
set -euo pipefail

export RAY_AUTH_MODE=token                      # nobody without the token is listened to
export RAY_USAGE_STATS_ENABLED=0                # nothing is reported to anybody
export RAY_max_direct_call_object_size=1048576  # bytes that travel in a message itself, as in kilt's own Ray
export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=0  # seconds that Ray waits before it ends

if [[ -z ${RAY_AUTH_TOKEN:-} && ! -s ${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token} ]]; then
    echo "there is no token in ${RAY_AUTH_TOKEN_PATH:-$HOME/.ray/auth_token}: make one on the first machine with" \
        "\`(umask 077 && ray get-auth-token --generate >/dev/null)\` and copy the file to the others" >&2
    exit 2
fi
case " $* " in
    *" --head "* | *" --head="*) set -- "$@" --include-dashboard=false ;;
    *" --address "* | *" --address="*) ;;
    *) echo "usage: node.sh --head --port PORT, or node.sh --address HOST:PORT" >&2 && exit 2 ;;
esac
# Kernels that every run calls are compiled before the first run waits for them; a second call finds them.
if command -v kilt >/dev/null; then kilt setup || true; fi
exec ray start --block --disable-usage-stats --object-store-memory=268435456 "$@"
