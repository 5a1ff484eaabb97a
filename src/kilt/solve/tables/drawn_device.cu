// What a draw teaches players with buckets: sums over all hands of a bucket on all boards of a round, of the reach and the values
// that walks have written down, enter the tables.
//
// A warp has one decision and one bucket. The places of hands on boards are sorted by bucket, so that sums are always taken in the
// same order. Given on compilation: `number`, float or double; ACTIONS, how many numbers a decision has for a bucket, and ALIGNED,
// how many bytes of them can be read at once.

struct __align__(ALIGNED) Chances { number of[ACTIONS]; };
struct Entries { double of[ACTIONS]; };

// The sum over the places `items` from … to … of what stands there, each times the weight of its board; in all lanes.
__device__ inline double weighed(const int* items, int from, int until, const number* weight, int hands, const number* vector)
{
    double sum = 0;
    for (int i = from + threadIdx.x % 32; i < until; i += 32) sum += (double)(weight[items[i] / hands] * vector[items[i]]);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    return sum;
}

// Add the player's strategy at its decisions, which have `reach` [place, board, hand], to the average.
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
        total[at].of[a] = averaged(total[at].of[a], arriving * chances[at].of[a], learning.average_weight, learning.average);
}

// Add what the actions of the player's decisions are worth more than the strategy, by `value` [place + action, board, hand], to the
// regrets, and match these.
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
        const double sum = learnt(
            regret[at].of[a], worth[a] - mean, learning.noise, learning.weight, learning.above, learning.below);
        regret[at].of[a] = sum;
        whole += sum > 0 ? sum : 0;
    }
    for (int a = 0; a < count[d]; a++)
        chances[at].of[a] = whole > TINY ? (regret[at].of[a] > 0 ? regret[at].of[a] / whole : 0) : 1.0 / count[d];
}
