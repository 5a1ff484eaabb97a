// The last round of a public tree for CFR+: tables have entries for the hands that are compatible with a board, of two bytes or as
// numbers, and all other data of a block of betting stays on the chip [Johanson16 §2.4, chapter 9].
//
// A warp processes one board; a lane has EACH adjacent hands in order of strength, for all blocks of betting. `compact.py` generates the
// code of a block as the `walk` of a struct and appends it to this file. All blocks have the same nodes, with different stakes.
//
// Compile-time parameters: `number`, float or double; STORED, the type of a table entry: unsigned short, or `number`; LANES per warp;
// WARPS per block, and RESIDENT blocks per multiprocessor; EACH; STRIDE, entries per row; AVERAGED, whether an average is stored; OFFSET,
// an integer type for offsets in shared memory; LISTS of hands that hold a card, LENGTH of such a list, SEGMENTS of it, each summed by a
// lane; ROWS, DECISIONS and LEAVES of a block of betting.

#define LIST (LENGTH + 1)
#define PART ((LENGTH + SEGMENTS - 1) / SEGMENTS)
#define WARP_MASK 0xffffffffu

struct Vector { number of[EACH]; };
struct __align__(EACH % 4 == 0 ? 4 * sizeof(STORED) : sizeof(STORED)) Entries { STORED of[EACH]; };
struct __align__(2 * sizeof(number)) Pair { number a, b; };
struct Sum { Vector won, met; };  // reach that a hand beats minus reach that beats it, and total compatible reach

// Shared memory of a warp, in pairs: sums over hands in order of strength; over the lists of cards; over whole lists, and over all.
// Entries without a hand have a separate list of zeros.
#define PREFIX 0
#define CARDS (LANES * EACH + 1)
#define WHOLE (CARDS + (LISTS + 1) * LIST)
#define SCRATCH (WHOLE + LISTS + 1)

struct Place {                       // a hand in the order of strength: offsets in shared memory, in bytes
    OFFSET lower, upper;             // beginning and end of its group of equals
    OFFSET at[2], first[2], last[2]; // in the lists of its cards: itself, beginning and end of its group
    OFFSET whole[2];                 // the sums of these lists
};

struct Walk {                        // arguments of the generated code
    const Place* mine;               // [EACH]
    int lane, base;                  // beginning of the warp's shared memory, in pairs
    STORED *table, *average;         // [ROWS, STRIDE] regrets, or a strategy, and sums of strategies
    unsigned char *powers, *average_powers;  // [DECISIONS] exponents of two-byte entries: see `power_of_two`
    const number* stakes;            // [LEAVES] stakes of the player
    number noise;                    // smaller differences of values count as 0
    number weight, kept;             // weight of added strategies, and factor of sums of strategies
    unsigned seed;                   // random seed of this iteration, player, board and block of betting
};

extern __shared__ unsigned char memory[];

__device__ inline Pair& shared_pair(int offset) { return *(Pair*)(memory + offset); }
__device__ inline Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
__device__ inline Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
__device__ inline Pair from_below(Pair x, int lanes)
{
    return {__shfl_up_sync(WARP_MASK, x.a, lanes), __shfl_up_sync(WARP_MASK, x.b, lanes)};
}
__device__ inline float quotient(float x, float y) { return __fdividef(x, y); }
__device__ inline double quotient(double x, double y) { return x / y; }
__device__ inline number power_of_two(unsigned biased) { return __uint_as_float(biased << 23); }

__device__ inline float most_of_warp(float x)
{
#if __CUDA_ARCH__ >= 800
    return __uint_as_float(__reduce_max_sync(WARP_MASK, __float_as_uint(x)));  // as numbers that are not negative are ordered
#else
    for (int d = 1; d < LANES; d *= 2) x = max(x, __shfl_xor_sync(WARP_MASK, x, d));
    return x;
#endif
}

__device__ inline Vector times(number stake, const Vector& x)
{
    Vector y;
#pragma unroll
    for (int k = 0; k < EACH; k++) y.of[k] = stake * x.of[k];
    return y;
}

__device__ inline void add(Vector& sum, const Vector& x)
{
#pragma unroll
    for (int k = 0; k < EACH; k++) sum.of[k] += x.of[k];
}

__device__ inline void take_from(Vector& rest, const Vector& x)
{
#pragma unroll
    for (int k = 0; k < EACH; k++) rest.of[k] -= x.of[k];
}

__device__ inline void raise(Vector& best, const Vector& x)
{
#pragma unroll
    for (int k = 0; k < EACH; k++) best.of[k] = max(best.of[k], x.of[k]);
}

// Read the entries of a decision's actions, without conversion.
template <int COUNT> __device__ inline void fetch(const Walk& walk, const STORED* table, int row, Entries* found)
{
#pragma unroll
    for (int a = 0; a < COUNT; a++) {
        if (walk.lane * EACH < STRIDE) found[a] = *(const Entries*)(table + (row + a) * STRIDE + walk.lane * EACH);
        else
#pragma unroll
            for (int k = 0; k < EACH; k++) found[a].of[k] = 0;
    }
}

// Store nonnegative numbers of a decision. Two-byte entries are multiples of the smallest power of two with which all of them fit (up to
// a factor just above 1). They are rounded up or down at random, so that errors have mean 0, and small additions are not lost.
template <int COUNT> __device__ inline void keep(
    const Walk& walk, STORED* table, unsigned char* powers, int row, int decision, unsigned salt, const Vector* numbers)
{
    Entries stored[COUNT];
    if (sizeof(STORED) == 2) {
        float most = 0;
#pragma unroll
        for (int a = 0; a < COUNT; a++)
#pragma unroll
            for (int k = 0; k < EACH; k++) most = max(most, (float)numbers[a].of[k]);
        const int biased = max((int)(__float_as_uint(most_of_warp(most)) >> 23) - 15, 1);
        const number inverse = power_of_two(254 - biased) * (number)65535;  // entries with 16 bits after the point stay below 2^32
        if (walk.lane == 0) powers[decision] = biased;
        unsigned random = (walk.seed + salt + decision * LANES + walk.lane) * 2654435769u;
        random = (random ^ random >> 15) * 2246822519u;
        random ^= random >> 13;
#pragma unroll
        for (int a = 0; a < COUNT; a++)
#pragma unroll
            for (int k = 0; k < EACH; k++) {
                random = random * 1664525u + 1013904223u;
                stored[a].of[k] = ((unsigned)(numbers[a].of[k] * inverse) + (random >> 16)) >> 16;
            }
    } else {
#pragma unroll
        for (int a = 0; a < COUNT; a++)
#pragma unroll
            for (int k = 0; k < EACH; k++) stored[a].of[k] = (STORED)numbers[a].of[k];
    }
    if (walk.lane * EACH < STRIDE)
#pragma unroll
        for (int a = 0; a < COUNT; a++) *(Entries*)(table + (row + a) * STRIDE + walk.lane * EACH) = stored[a];
}

// Factor of the entries of a decision.
__device__ inline number scale_of(const unsigned char* powers, int decision)
{
    return sizeof(STORED) == 2 ? power_of_two(powers[decision]) * (number)(65536.0 / 65535.0) : 1;
}

// The opponent's reach after each action of a decision, by regret matching; in learning walks, it is added to the average.
template <int COUNT, bool LEARN>
__device__ inline void follow(const Walk& walk, int row, int decision, const Vector& reach, Vector* after)
{
    Entries found[COUNT];
    fetch<COUNT>(walk, walk.table, row, found);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        number total = 0;
#pragma unroll
        for (int a = 0; a < COUNT; a++) total += found[a].of[k];
        const bool known = total > (number)TINY;
        const number scale = quotient(reach.of[k], known ? total : COUNT);
#pragma unroll
        for (int a = 0; a < COUNT; a++) after[a].of[k] = known ? found[a].of[k] * scale : scale;
    }
    if (LEARN && AVERAGED) {
        Vector sums[COUNT];
        const number scale = scale_of(walk.average_powers, decision) * walk.kept, weight = walk.weight * walk.kept;
        fetch<COUNT>(walk, walk.average, row, found);
#pragma unroll
        for (int a = 0; a < COUNT; a++)
#pragma unroll
            for (int k = 0; k < EACH; k++) sums[a].of[k] = scale * found[a].of[k] + weight * after[a].of[k];
        keep<COUNT>(walk, walk.average, walk.average_powers, row, decision, 0x9e3779b9u, sums);
    }
}

// Sums of two reaches in order of strength, without hands that share a card [Johanson16 §2.4].
__device__ inline void sum_up(const Walk& walk, const Vector& a, const Vector& b, Sum& of_a, Sum& of_b)
{
    const int lane = walk.lane;
    Pair* scratch = (Pair*)memory + walk.base;
    Pair total = {0, 0};
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const Pair both = {a.of[k], b.of[k]};
        total = total + both;
        shared_pair(walk.mine[k].at[0]) = both;
        shared_pair(walk.mine[k].at[1]) = both;
    }
    Pair sum = total;
#pragma unroll
    for (int d = 1; d < LANES; d *= 2) {
        const Pair more = from_below(sum, d);
        if (lane >= d) sum = sum + more;
    }
    Pair running = sum - total;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        running = running + Pair{a.of[k], b.of[k]};
        scratch[PREFIX + lane * EACH + k + 1] = running;
    }
    if (lane == LANES - 1) scratch[WHOLE + LISTS] = running;
    __syncwarp();
#pragma unroll
    for (int part = lane; part < (LISTS * SEGMENTS + LANES - 1) / LANES * LANES; part += LANES) {
        const int card = part / SEGMENTS, segment = part % SEGMENTS;
        Pair* list = scratch + CARDS + min(card, LISTS - 1) * LIST + 1 + segment * PART;
        Pair sums[PART], held = {0, 0};
#pragma unroll
        for (int j = 0; j < PART; j++) {
            if (segment * PART + j < LENGTH) held = held + list[j];
            sums[j] = held;
        }
        Pair until_here = held;
#pragma unroll
        for (int d = 1; d < SEGMENTS; d *= 2) {
            const Pair more = from_below(until_here, d);
            if (segment >= d) until_here = until_here + more;
        }
        const Pair earlier = until_here - held;
#pragma unroll
        for (int j = 0; j < PART; j++)
            if (card < LISTS && segment * PART + j < LENGTH) list[j] = sums[j] + earlier;
        if (card < LISTS && segment == SEGMENTS - 1) scratch[WHOLE + card] = until_here;
    }
    __syncwarp();
    const Pair all = scratch[WHOLE + LISTS];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const Place mine = walk.mine[k];
        const Pair meets = all - shared_pair(mine.whole[0]) - shared_pair(mine.whole[1]);
        const Pair won = shared_pair(mine.lower) + shared_pair(mine.upper) - meets - (shared_pair(mine.first[0]) + shared_pair(mine.last[0]))
            - (shared_pair(mine.first[1]) + shared_pair(mine.last[1]));
        of_a.won.of[k] = won.a;
        of_b.won.of[k] = won.b;
        of_a.met.of[k] = meets.a + a.of[k];
        of_b.met.of[k] = meets.b + b.of[k];
    }
    __syncwarp();
}

// Value of a decision of the player, by regret matching on its entries.
template <int COUNT> __device__ inline Vector matched(const Entries* found, const Vector* values)
{
    Vector worth;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        number total = 0, mean = 0, even = 0;
#pragma unroll
        for (int a = 0; a < COUNT; a++) {
            total += found[a].of[k];
            mean += found[a].of[k] * values[a].of[k];
            even += values[a].of[k];
        }
        const bool known = total > (number)TINY;
        worth.of[k] = quotient(known ? mean : even, known ? total : COUNT);
    }
    return worth;
}

// Value of a decision of a player who follows a strategy.
template <int COUNT> __device__ inline Vector mean(const Walk& walk, int row, int decision, const Vector* values)
{
    Entries found[COUNT];
    fetch<COUNT>(walk, walk.table, row, found);
    return matched<COUNT>(found, values);
}

// Value of a decision of the player; updates its regrets, which do not fall below zero.
template <int COUNT> __device__ inline Vector learn(const Walk& walk, int row, int decision, const Vector* values)
{
    Entries found[COUNT];
    Vector regret[COUNT];
    const number scale = scale_of(walk.powers, decision);
    fetch<COUNT>(walk, walk.table, row, found);
    const Vector worth = matched<COUNT>(found, values);
#pragma unroll
    for (int k = 0; k < EACH; k++)
#pragma unroll
        for (int a = 0; a < COUNT; a++) {
            const number gained = values[a].of[k] - worth.of[k];
            regret[a].of[k] = updated_regret_plus(scale * (number)found[a].of[k], gained, walk.noise, (number)1, (number)1);
        }
    keep<COUNT>(walk, walk.table, walk.powers, row, decision, 0, regret);
    return worth;
}

// Values of the blocks of the last round: a block of threads has one board, and its warps divide the betting.
template <class Betting> __device__ inline void walk_boards(
    const int* above, const int* parent, const Place* places, const short* hand_at, const int* live_hands, const number* stakes,
    const number* up, int boards, int boards_before, int hands, int entries, const Learning& learning, int seed, STORED* table,
    unsigned char* powers, STORED* average, unsigned char* average_powers, number* value)
{
    const int board = blockIdx.x, warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, live = live_hands[board];
    Place mine[EACH];
    int hand[EACH];
    Walk walk;
    walk.mine = mine;
    walk.lane = lane;
    walk.base = warp * SCRATCH;
    walk.noise = learning.noise;
    walk.weight = learning.average_weight;
    walk.kept = learning.average;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const size_t place = (size_t)board * LANES * EACH + lane * EACH + k;
        const int begin = walk.base * sizeof(Pair);
        const Place own = places[place];
        mine[k].lower = own.lower + begin;
        mine[k].upper = own.upper + begin;
#pragma unroll
        for (int c = 0; c < 2; c++) {
            mine[k].at[c] = own.at[c] + begin;
            mine[k].first[c] = own.first[c] + begin;
            mine[k].last[c] = own.last[c] + begin;
            mine[k].whole[c] = own.whole[c] + begin;
        }
        hand[k] = hand_at[place];
    }
    for (int i = lane; i < SCRATCH; i += LANES) ((Pair*)memory)[walk.base + i] = {0, 0};
    __syncwarp();
#pragma unroll 1
    for (int entry = warp; entry < entries; entry += WARPS) {
        const size_t block = (size_t)board * entries + entry;
        walk.table = table + block * ROWS * STRIDE;
        walk.powers = powers + block * DECISIONS;
        walk.average = average + block * ROWS * STRIDE;
        walk.average_powers = average_powers + block * DECISIONS;
        walk.stakes = stakes + entry * LEAVES;
        walk.seed = ((unsigned)block * 40503u + seed) * DECISIONS * LANES;
        const number* root = up + ((size_t)above[entry] * boards_before + parent[board]) * hands;
        Vector reach;
#pragma unroll
        for (int k = 0; k < EACH; k++) reach.of[k] = lane * EACH + k < live ? root[hand[k]] : 0;
        const Vector worth = Betting::walk(walk, reach);
        number* result = value + ((size_t)entry * boards + board) * hands;
#pragma unroll
        for (int k = 0; k < EACH; k++)
            if (lane * EACH + k < live) result[hand[k]] = worth.of[k];
    }
}

#define KERNEL(name)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(LANES * WARPS, RESIDENT) name(                                                    \
        const int* above, const int* parent, const Place* places, const short* hand_at, const int* live_hands,                     \
        const number* stakes, const number* up, int boards, int boards_before, int hands, int entries, const Learning learning,    \
        int seed, STORED* table, unsigned char* powers, STORED* average, unsigned char* average_powers, number* value)             \
    {                                                                                                                              \
        walk_boards<name##_betting>(above, parent, places, hand_at, live_hands, stakes, up, boards, boards_before, hands, entries,  \
            learning, seed, table, powers, average, average_powers, value);                                                        \
    }
