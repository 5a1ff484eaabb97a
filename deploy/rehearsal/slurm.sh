#!/usr/bin/env bash
# Runs deploy/slurm/kilt.sbatch on this machine, with commands in the place of Slurm's that do what it needs of them:
# a job of two nodes, whose time is up after a while; it is put back into the queue, and goes on when its turn comes.
#
#   deploy/rehearsal/slurm.sh CONFIG RUN SECONDS [more options of kilt solve]
set -euo pipefail

config=$1 run=$2 seconds=$3
shift 3
place=$(mktemp -d) script=$(dirname "$(realpath "$0")")/../slurm/kilt.sbatch
trap 'rm -rf "$place"' EXIT
export PATH=$place:$PATH PLACE=$place KILT_HEAD=127.0.0.1
export SLURM_JOB_ID=$$ SLURM_JOB_NUM_NODES=2 SLURM_CPUS_PER_TASK=2 SLURM_MEM_PER_NODE=4096

cat >"$place/srun" <<'SRUN' # a task on each node: all of them are here
#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
for ((n = 0; n < SLURM_JOB_NUM_NODES; n++)); do
    SLURM_PROCID=$n "$@" &
    echo $! >>"$PLACE/tasks"
done
wait
SRUN
cat >"$place/scancel" <<'SCANCEL' # --signal=TERM JOB.0
#!/usr/bin/env bash
kill -TERM $(cat "$PLACE/tasks")
SCANCEL
cat >"$place/scontrol" <<'SCONTROL' # requeue JOB
#!/usr/bin/env bash
touch "$PLACE/requeued"
SCONTROL
chmod +x "$place"/s*

job() {
    rm -f "$place/tasks" "$place/requeued"
    bash "$script" "$config" "$run" "$@" &
}
job "$@"
batch=$!
(sleep "$seconds" && kill -USR1 $batch) &
wait $batch || true
[[ -e $place/requeued ]] || { echo "the job was not put back into the queue" >&2 && exit 1; }
echo "the job is in the queue again; its turn has come"
job "$@"
wait $!
