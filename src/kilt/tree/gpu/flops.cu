// The last round of a public tree on the boards after one flop, or of a draw: the values of its blocks of betting for a player. Modes:
//     RESPOND  the player responds to an opponent whose strategy is over buckets of hands [Johanson16 §2.4];
//     ANSWER   the same, and the responses are recorded, with the reach of the opponent at its decisions;
//     LEARN    the player has buckets, and the opponent plays the responses: the value of each action is recorded.
//
// All data of a block of betting stays on the chip. A block of threads has one board; a thread has EACH adjacent hands in order of
// strength, and executes the steps of the betting, depth first. Reach is summed for two showdowns and a fold at a time: its three lanes.
// The bottleneck is reading shared memory.
//
// Compile-time parameters: `number`, float or double; EACH; THREADS per block, and RESIDENT blocks per multiprocessor; LISTS of hands
// that hold a card, and LENGTH of such a list; SEGMENTS of it, each summed by a thread; SLOTS and LEVELS, the numbers of reaches and
// values in memory at a time; STEPS of the longest block of betting; ACTIONS, the numbers that a decision stores per bucket, and ALIGNED,
// how many of their bytes can be read at once; MODE.

#define LIST (LENGTH + 1)
#define PART ((LENGTH + SEGMENTS - 1) / SEGMENTS)

#define RESPOND 0
#define ANSWER 1
#define LEARN 2

enum Op { DECIDE, SUM, FOLDED, SHOWN, ADD, BEST };
enum Turn { FIRST, MIDDLE, LAST };

struct Step {
    double stake;     // of a leaf, to the player
    int op;
    int slot[3];      // DECIDE: index of the opponent's reach, and of the reach after the first action, followed by the others;
                      // SUM: the slots of its lanes, the third for folds only; leaves: the lane; ADD, BEST: the level;
                      // BEST: then the action, and the row of the decision's first action in the round
    int decision;     // DECIDE, BEST: index of its probabilities
    int count;        // DECIDE: number of actions; ADD, BEST: FIRST, MIDDLE or LAST value
};

struct __align__(4) Place {   // a hand in the order of strength
    short hand, lower, upper; // beginning and end of its group of equals
    unsigned short at[2], first[2], last[2];  // in the lists of its cards: itself, beginning and end of its group
    unsigned short unused;
};

struct __align__(ALIGNED) Chances { number of[ACTIONS]; };
struct __align__(2 * sizeof(number)) Pair { number a, b; };
struct __align__(16) Sums { number a, b, fold, unused; };

__device__ inline Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
__device__ inline Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
__device__ inline Sums operator+(Sums x, Sums y) { return {x.a + y.a, x.b + y.b, x.fold + y.fold, 0}; }
__device__ inline Sums operator-(Sums x, Sums y) { return {x.a - y.a, x.b - y.b, x.fold - y.fold, 0}; }
__device__ inline Sums from_below(Sums x, int lanes)
{
    return {__shfl_up_sync(0xffffffffu, x.a, lanes), __shfl_up_sync(0xffffffffu, x.b, lanes),
        __shfl_up_sync(0xffffffffu, x.fold, lanes), 0};
}

// Expand probabilities of the opponent, [decision, bucket], to all hands of some boards: tables of `device.cu`.
extern "C" __global__ void expand(
    const Chances* chances, const int* decisions, const int* rows, const int* counts, const int* bucket, int columns,
    int boards, int hands, long long first_row, int rows_of_board, number* table)
{
    const int hand = blockIdx.x * blockDim.x + threadIdx.x, board = blockIdx.y, d = blockIdx.z;
    if (hand >= hands) return;
    const Chances found = chances[(size_t)decisions[d] * columns + bucket[(size_t)board * hands + hand]];
    number* to = table + (size_t)(first_row + (long long)rows_of_board * board + rows[d]) * hands + hand;
    for (int a = 0; a < counts[d]; a++) to[(size_t)a * hands] = found.of[a];
}

// Shared memory holds sums over hands in order of strength, sums over the lists of cards, over whole lists and over warps; then
// the steps. `choices` [decision from `first_decision` on, board, place] are the actions of responses; `found` is [decision from
// `first_found` on, board, place] the opponent's reach in ANSWER, and [row from there on, board, place] values in LEARN.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) last_round(
    const Step* steps, const int* begin, const int* above, const int* parent, const Place* places, const int* live_hands,
    const int* bucket, const Chances* chances, const number* up, int columns, int boards, int boards_before, int hands,
    int first_entry, int entries, int together, number noise, int first_decision, int first_found, unsigned char* choices,
    number* found, number* value)
{
    extern __shared__ unsigned char memory[];
    Sums* whole = (Sums*)memory;                           // [list]
    Sums* ends = whole + LISTS;                            // [warp]
    Step* program = (Step*)(ends + (THREADS + 31) / 32);   // [step]
    Pair* prefix = (Pair*)(program + STEPS);               // [hand + 1]
    Pair* lists = prefix + EACH * THREADS + 1;             // [list][place + 1]
    number* folds = (number*)(lists + LISTS * LIST);       // [list][place + 1]
    const int board = blockIdx.x, thread = threadIdx.x, live = live_hands[board];
    const int warp = thread / 32, all_warps = (THREADS + 31) / 32;

    Place mine[EACH];
    int column[EACH];
    Pair won[EACH];
    Sums met[EACH];
    number now[EACH];
    number reach[SLOTS][EACH], kept[LEVELS][EACH];
    unsigned char best[MODE == ANSWER ? LEVELS : 1][EACH];
    const size_t step_of = (size_t)boards * hands, here_of = (size_t)board * hands + thread * EACH;  // strides of the recorded arrays
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int i = thread * EACH + k;
        mine[k] = places[(size_t)board * hands + (i < live ? i : 0)];
        column[k] = bucket[(size_t)board * hands + mine[k].hand];
        now[k] = 0;
        won[k] = {0, 0};
        met[k] = {0, 0, 0, 0};
    }
    if (thread == 0) prefix[0] = {0, 0};
    for (int list = thread; list < LISTS; list += THREADS) lists[list * LIST] = {0, 0};

    const int from = first_entry + blockIdx.y * together, until = min(from + together, first_entry + entries);
    for (int entry = from; entry < until; entry++) {
        const int first = begin[entry], number_of_steps = begin[entry + 1] - first;
        __syncthreads();
        for (int i = thread; i < number_of_steps * (int)(sizeof(Step) / sizeof(int)); i += THREADS)
            ((int*)program)[i] = ((const int*)(steps + first))[i];
        const number* root = up + ((size_t)above[entry] * boards_before + parent[board]) * hands;
#pragma unroll
        for (int k = 0; k < EACH; k++) reach[0][k] = thread * EACH + k < live ? root[mine[k].hand] : 0;
        __syncthreads();
        for (int s = 0; s < number_of_steps; s++) {
            const Step step = program[s];
            if (step.op == DECIDE) {
                const Chances* row = chances + (size_t)step.decision * columns;
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    const number arriving = reach[step.slot[0]][k];
#if MODE == LEARN
                    const int chosen = thread * EACH + k < live
                        ? choices[(step.decision - first_decision) * step_of + here_of + k] : 0;
#pragma unroll
                    for (int a = 0; a < ACTIONS; a++)
                        if (a < step.count) reach[step.slot[1] + a][k] = a == chosen ? arriving : 0;
#else
                    const Chances share = row[column[k]];
#pragma unroll
                    for (int a = 0; a < ACTIONS; a++)
                        if (a < step.count) reach[step.slot[1] + a][k] = arriving * share.of[a];
                    if (MODE == ANSWER && thread * EACH + k < live)
                        found[(step.decision - first_found) * step_of + here_of + k] = arriving;
#endif
                }
            } else if (step.op == SUM) {
                Sums here[EACH], total = {0, 0, 0, 0};
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    here[k] = {reach[step.slot[0]][k], reach[step.slot[1]][k], reach[step.slot[2]][k], 0};
                    total = total + here[k];
                    if (thread * EACH + k >= live) continue;
                    const Pair both = {here[k].a, here[k].b};
                    lists[mine[k].at[0]] = both;
                    lists[mine[k].at[1]] = both;
                    folds[mine[k].at[0]] = here[k].fold;
                    folds[mine[k].at[1]] = here[k].fold;
                }
                Sums sum = total;
#pragma unroll
                for (int d = 1; d < 32; d *= 2) {
                    const Sums more = from_below(sum, d);
                    if ((thread & 31) >= d) sum = sum + more;
                }
                if ((thread & 31) == 31 || thread == THREADS - 1) ends[warp] = sum;
                __syncthreads();
                Sums all = {0, 0, 0, 0};
                Pair running = {sum.a - total.a, sum.b - total.b};
                for (int w = 0; w < all_warps; w++) {
                    const Sums end = ends[w];
                    if (w < warp) running = running + Pair{end.a, end.b};
                    all = all + end;
                }
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    running = running + Pair{here[k].a, here[k].b};
                    prefix[thread * EACH + k + 1] = running;
                }
                for (int part = thread; part < (LISTS * SEGMENTS + 31) / 32 * 32; part += THREADS) {
                    const int card = part / SEGMENTS, segment = part % SEGMENTS;
                    const int start = min(card, LISTS - 1) * LIST + 1 + segment * PART;
                    Pair sums[PART];
                    Sums held = {0, 0, 0, 0};
#pragma unroll
                    for (int j = 0; j < PART; j++) {
                        if (segment * PART + j < LENGTH) {
                            const Pair both = lists[start + j];
                            held = held + Sums{both.a, both.b, folds[start + j], 0};
                        }
                        sums[j] = {held.a, held.b};
                    }
                    Sums until_here = held;
#pragma unroll
                    for (int d = 1; d < SEGMENTS; d *= 2) {
                        const Sums more = from_below(until_here, d);
                        if (segment >= d) until_here = until_here + more;
                    }
                    if (card >= LISTS) continue;
                    const Pair earlier = {until_here.a - held.a, until_here.b - held.b};
#pragma unroll
                    for (int j = 0; j < PART; j++)
                        if (segment * PART + j < LENGTH) lists[start + j] = sums[j] + earlier;
                    if (segment == SEGMENTS - 1) whole[card] = until_here;
                }
                __syncthreads();
#pragma unroll
                for (int k = 0; k < EACH; k++) {
                    if (thread * EACH + k >= live) continue;
                    const Sums one = whole[mine[k].first[0] / LIST], two = whole[mine[k].first[1] / LIST];
                    met[k] = all + here[k] - one - two;
                    won[k] = prefix[mine[k].lower] + prefix[mine[k].upper] - Pair{all.a, all.b}
                        - (lists[mine[k].first[0]] + lists[mine[k].last[0]] - Pair{one.a, one.b})
                        - (lists[mine[k].first[1]] + lists[mine[k].last[1]] - Pair{two.a, two.b});
                }
                __syncthreads();
            } else if (step.op == FOLDED || step.op == SHOWN) {
                const number stake = step.stake;
                const int lane = step.slot[0];
#pragma unroll
                for (int k = 0; k < EACH; k++)
                    now[k] = stake * (step.op == SHOWN ? (lane == 0 ? won[k].a : won[k].b)
                        : lane == 0 ? met[k].a : lane == 1 ? met[k].b : met[k].fold);
            } else {
                const int level = step.slot[0];
#pragma unroll
                for (int k = 0; k < EACH; k++) {
#if MODE == LEARN
                    if (step.op == BEST) {
                        if (thread * EACH + k < live)
                            found[(step.slot[2] + step.slot[1] - first_found) * step_of + here_of + k] = now[k];
                        now[k] *= chances[(size_t)step.decision * columns + column[k]].of[step.slot[1]];
                    }
                    if (step.count != FIRST) now[k] += kept[level][k];
#else
                    if (MODE == ANSWER && step.op == BEST) {
                        // The first of all actions that are best up to noise, in any order of the steps.
                        const number more = step.count == FIRST ? 1 : now[k] - kept[level][k];
                        const bool tied = more <= noise && more >= -noise;
                        if (step.count == FIRST || (tied ? step.slot[1] < best[level][k] : more > 0))
                            best[level][k] = step.slot[1];
                        if (step.count == LAST && thread * EACH + k < live)
                            choices[(step.decision - first_decision) * step_of + here_of + k] = best[level][k];
                    }
                    if (step.count != FIRST)
                        now[k] = step.op == ADD ? kept[level][k] + now[k] : max(kept[level][k], now[k]);
#endif
                    if (step.count != LAST) kept[level][k] = now[k];
                }
            }
        }
        number* result = value + ((size_t)entry * boards + board) * hands;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (thread * EACH + k < live) result[mine[k].hand] = now[k];
        for (int i = live + thread; i < hands; i += THREADS) result[places[(size_t)board * hands + i].hand] = 0;
    }
}
