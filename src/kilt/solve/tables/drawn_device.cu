// Updates players with buckets after a draw: reach and values that walks have recorded are summed over all hands of a bucket on all
// boards of a round, and enter the tables.
//
// A warp handles one decision and one bucket. Hands on boards are sorted by bucket, so sums always have the same order. Compile-time
// parameters: `number`, float or double; ACTIONS, the numbers that a decision stores per bucket; ALIGNED, how many of their bytes can
// be read at once.

struct __align__(ALIGNED) Chances { number of[ACTIONS]; };
struct Entries { double of[ACTIONS]; };

// Sum of the values at the indices `items`, weighted by the boards' probabilities; all lanes get the result.
__device__ inline double weighed(const int* items, int from, int until, const number* weight, int hands, const number* vector)
{
    double sum = 0;
    for (int i = from + threadIdx.x % 32; i < until; i += 32) sum += (double)(weight[items[i] / hands] * vector[items[i]]);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    return sum;
}

// Add the player's strategy, weighted by the decisions' `reach` [place, board, hand], to the average.
extern "C" __global__ void learn_average(
    const int* items, const int* begin, const int* column, int buckets, const number* weight, int boards, int hands,
    const int* decision, const int* place, const number* reach, const Learning learning, int columns, const Chances* chances,
    Entries* total)
{
    const int bucket = (blockIdx.x * blockDim.x + threadIdx.x) / 32, d = blockIdx.y;
    if (bucket >= buckets) return;
    const number* vector = reach + (size_t)place[d] * boards * hands;
    const double arriving = weighed(items, begin[bucket], begin[bucket + 1], weight, hands, vector);
    if (threadIdx.x % 32) return;
    const size_t at = (size_t)decision[d] * columns + column[bucket];
    for (int a = 0; a < ACTIONS; a++)
        total[at].of[a] = updated_average(total[at].of[a], arriving * chances[at].of[a], learning.average_weight, learning.average);
}

// Add the regrets of the player's actions, computed from `value` [place + action, board, hand], to the table, and apply regret
// matching.
extern "C" __global__ void learn_regrets(
    const int* items, const int* begin, const int* column, int buckets, const number* weight, int boards, int hands,
    const int* decision, const int* count, const int* place, const number* value, const Learning learning, int columns,
    Chances* chances, Entries* regret)
{
    const int bucket = (blockIdx.x * blockDim.x + threadIdx.x) / 32, d = blockIdx.y;
    if (bucket >= buckets) return;
    const size_t at = (size_t)decision[d] * columns + column[bucket];
    double worth[ACTIONS], mean = 0, whole = 0;
    for (int a = 0; a < ACTIONS; a++) {
        worth[a] = 0;
        if (a >= count[d]) continue;
        const number* vector = value + (size_t)(place[d] + a) * boards * hands;
        worth[a] = weighed(items, begin[bucket], begin[bucket + 1], weight, hands, vector);
        mean += chances[at].of[a] * worth[a];
    }
    if (threadIdx.x % 32) return;
    for (int a = 0; a < count[d]; a++) {
        const double sum = updated_regret(
            regret[at].of[a], worth[a] - mean, learning.noise, learning.weight, learning.above, learning.below);
        regret[at].of[a] = sum;
        whole += sum > 0 ? sum : 0;
    }
    for (int a = 0; a < count[d]; a++)
        chances[at].of[a] = whole > TINY ? (regret[at].of[a] > 0 ? regret[at].of[a] / whole : 0) : 1.0 / count[d];
}
