// CUDA twins of the kernels of `joint_kernels.py`, for games with perfect recall: a bucket has a single sequence.
// A thread processes the nodes of one block for one sequence. Vectors are [node of the range, sequence].

struct Range { int block, begin, player, sequences; };  // first block and node, the player who acts, number of sequences

#define BETTING const int *actor, const int *children, const int *child, const int *first, const int *block, Range range
#define WALK \
    const int s = blockIdx.x * blockDim.x + threadIdx.x, width = range.sequences; \
    if (s >= width) return; \
    const int low = block[range.block + blockIdx.y], high = block[range.block + blockIdx.y + 1], own = bucket[s];
#define AT(vectors, node) vectors[(long long)((node) - range.begin) * width + s]
#define SLOT(node) (first[node] + own * children[node])

extern "C" __global__ void push_reach(BETTING, const int *bucket, const double *strategy, double *reach) {
    WALK
    for (int node = low; node < high; node++) {
        if (actor[node] < 0) continue;
        const double here = AT(reach, node);
        for (int a = 0; a < children[node]; a++)
            AT(reach, child[node] + a) =
                actor[node] == range.player ? here * strategy[SLOT(node) + a] : here;
    }
}

extern "C" __global__ void add_average(
    BETTING, const int *bucket, const double *likely, Learning learning, const double *reach,
    double *total) {
    WALK
    for (int node = low; node < high; node++) {
        if (actor[node] != range.player) continue;
        for (int a = 0; a < children[node]; a++) {
            const double more = likely[s] * AT(reach, child[node] + a);
            total[SLOT(node) + a] = updated_average(total[SLOT(node) + a], more, learning.average_weight, learning.average);
        }
    }
}

extern "C" __global__ void pull_values(
    BETTING, const int *bucket, const double *strategy, double *value) {
    WALK
    for (int node = high - 1; node >= low; node--) {
        if (actor[node] < 0) continue;
        double here = 0;
        for (int a = 0; a < children[node]; a++) {
            const double there = AT(value, child[node] + a);
            here += actor[node] == range.player ? strategy[SLOT(node) + a] * there : there;
        }
        AT(value, node) = here;
    }
}

extern "C" __global__ void respond(BETTING, const int *bucket, double *strategy, double *value) {
    WALK
    for (int node = high - 1; node >= low; node--) {
        if (actor[node] < 0) continue;
        double here = 0;
        int best = 0;
        for (int a = 0; a < children[node]; a++) {
            const double there = AT(value, child[node] + a);
            if (actor[node] != range.player) here += there;
            else if (a == 0 || there > here) here = there, best = a;
        }
        AT(value, node) = here;
        if (actor[node] != range.player) continue;
        for (int a = 0; a < children[node]; a++) strategy[SLOT(node) + a] = a == best;
    }
}

extern "C" __global__ void learn(
    BETTING, const int *bucket, Learning learning, const double *value, double *regret,
    double *strategy) {
    WALK
    for (int node = low; node < high; node++) {
        if (actor[node] != range.player) continue;
        const int count = children[node], slot = SLOT(node);
        double here = AT(value, node);
        if (learning.restricted) {  // values are those of the played strategy, regrets those of the learnt one
            here = 0;
            for (int a = 0; a < count; a++) here += strategy[slot + a] * AT(value, child[node] + a);
        }
        double whole = 0;
        for (int a = 0; a < count; a++) {
            const double gained = AT(value, child[node] + a) - here, weight = learning.weight, least = learning.noise;
            const double now = updated_regret(regret[slot + a], gained, least, weight, learning.above, learning.below);
            regret[slot + a] = now;
            const double share = weight * learning.predictive;
            const double likely = max(share > 0 ? updated_regret(now, gained, least, share, 1.0, 1.0) : now, 0.0);
            strategy[slot + a] = likely;
            whole += likely;
        }
        for (int a = 0; a < count; a++) strategy[slot + a] = whole > 0 ? strategy[slot + a] / whole : 1.0 / count;
    }
}

extern "C" __global__ void normalise(const int *start, int infosets, const double *total, double *strategy) {
    const int where = blockIdx.x * blockDim.x + threadIdx.x;
    if (where >= infosets) return;
    double whole = 0;
    for (int slot = start[where]; slot < start[where + 1]; slot++) whole += total[slot];
    for (int slot = start[where]; slot < start[where + 1]; slot++)
        strategy[slot] = whole > 0 ? total[slot] / whole : 1.0 / (start[where + 1] - start[where]);
}
