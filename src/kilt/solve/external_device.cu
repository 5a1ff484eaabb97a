// External sampling [Lanctot et al. 2009] on a GPU: the walks of `external_kernels`, for many deals in parallel.
//
// A warp takes some deals and walks for both players of each, breadth first; its lanes share the decisions of a level.
// Random access to the tables is the limit: many walks must wait for memory at the same time. An opponent's decision
// passes the address of its own value to its child, so the way back visits only the player's own decisions. The lists of a
// warp have room for typical batches. A warp that needs more borrows the one large list, which fits any batch.
//
// Compile-time constants: LANES per warp, WARPS per block, RESIDENT blocks per multiprocessor; ACTIONS, the most of a
// decision; DEPTH, the most decisions of a hand; SIZE, the most deals of a warp; ROUNDS; HELD private and BOARD public
// cards; SUITS; SEARCHES for canonical boards; AVERAGED, whether actions are counted; PRUNED, whether walks skip actions;
// PRICED, the number of first rounds in which an all-in pays its mean over all boards that may follow; TRUNK, the rounds
// before classes of boards, if the table has the rows of some classes alone, or 0; COMPACT, whether regrets after the first
// round have two bytes.

typedef unsigned long long Word;
typedef unsigned int Number;
typedef unsigned char Byte;

#define CARDS (2 * HELD + BOARD)
#define ALL 0xffffffffu
#define GOLD 0x9E3779B97F4A7C15ull
#define OVER 2                       // actor of a terminal node
#define MOSTLY 0.95                  // share of walks that skip actions, with pruning
#define WALKS 0x5851F42D4C957F2Dull  // separates random numbers of walks from those of the cards
#define LEFT_OUT 0x7fc00001u         // value of a skipped action: not a number

struct __align__(16) Node { Word first; Number link; unsigned short count; Byte actor, round; };

// A decision that a walk has reached: its row of the table and other fields in `info`; its first child, or on the way back the index
// of that child's value; and the index of its own value.
struct __align__(16) Place { Word info; Number link, mine; };
#define ROW(info) ((info) & 0xffffffffffull)
#define COUNT(info) ((int)((info) >> 40 & 63))
#define WALK(info) ((int)((info) >> 46 & 63))
#define ACTOR(info) ((int)((info) >> 52 & 1))
#define WIDE(info) ((int)((info) >> 53 & 1))

// Tables that find the canonical board of dealt cards: see `cards.boards_kernels.find_canonical_board`.
struct Search { const Word* word; const Number *first, *symmetry; Number parts, dealt[4], start; };

// The buckets of a round for a player: a table over canonical boards and hands, and the meaning of its codes in each class.
// `inside` is the number of buckets of a class of boards, from round TRUNK on.
struct Look { const void* table; const int *labels, *bucket; Number bytes, hands, search, classes, codes, inside; };

struct Hands {                       // see `cards.hands_kernels`
    const Word *key, *bit;
    const int *low, *high;
    const short *strength, *flush;
    Word start;
};

// The boards that may follow a round: [way, card] indices among the remaining cards.
struct Price { const Byte* ways; Number count, missing, size, unused; };

struct Deals {                       // tables to deal hands and look up their buckets
    const Search* search;
    const Look* look;                // [2 · round + player]
    const Number* names;             // [permutation] the name of suit s from bit 8s on
    const Byte* composed;            // [permutation, permutation]
    Hands hands;
    Word seed;
    const Price* price;              // [round]
    const float* edge;               // [hand, hand] value of an all-in before any board
    Number deck, permutations;
};

struct Lists { Place *level, *own; float* value; Number levels, owns, values, unused; };

struct Walks {
    const Node* nodes;
    const float* payoff;
    Number* table;                   // rows: regrets in single precision, or two a word in bfloat16, then counts
    double* wide;                    // those of the first round: regrets in double precision, then counts of 64 bits
    Lists lists, large;
    Number *taken, *next;            // whether the large list is taken; the next batch
    Word* counted;                   // decisions, visits, times that the large list was borrowed, decisions of the player
    Word first, deals;               // numbers of the deals
    double prune, weight;
    const Number* frame;             // [class] 1 + the frame with its rows; 0: not in GPU memory
    Word stride;                     // words of a frame
    Number size, chunk, batches;     // deals that a warp walks over together; that it takes at a time; times
};

__device__ inline Word mix(Word word)
{
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}
__device__ inline Word numbered(Word key, Word which) { return mix(key + which * GOLD); }
__device__ inline double uniform(Word key, Word which) { return (double)(numbered(key, which) >> 11) * 1.1102230246251565e-16; }  // 2^−53

__device__ inline Node node_at(const Node* nodes, Number i)
{
    union { uint4 words; Node node; } found;
    found.words = __ldg((const uint4*)(nodes + i));
    return found.node;
}
__device__ inline Place place_at(const Place* list)
{
    union { uint4 words; Place place; } found;
    found.words = *(const uint4*)list;
    return found.place;
}
__device__ inline void put(Place* list, Word info, Number link, Number mine)
{
    union { uint4 words; Place place; } given;
    given.place.info = info; given.place.link = link; given.place.mine = mine;
    *(uint4*)list = given.words;
}

// Prefix sum over the lanes before this one; `whole` gets the sum over all lanes.
__device__ inline Number before(Number mine, int lane, Number& whole)
{
    Number sum = mine;
    for (int d = 1; d < LANES; d *= 2) {
        const Number other = __shfl_up_sync(ALL, sum, d);
        if (lane >= d) sum += other;
    }
    whole = __shfl_sync(ALL, sum, LANES - 1);
    return sum - mine;
}

// ── deals ──

__device__ inline int strength_of(const Hands& hands, Word key, Word bits)
{
    const Word mark = key & 0x888800000000ull;
    if (mark) return hands.flush[bits >> 13 * ((__ffsll((long long)mark) - 1 - 32) >> 2) & 0x1fff];
    return hands.strength[hands.low[key & 0x1ffff] + hands.high[key >> 17 & 0x3fff]];
}

// The canonical board of the first cards, and the permutation of suits that leads there.
__device__ inline Number locate(const Deals& a, const Search& search, const int* cards, Number& turned)
{
    Number board = 0, known = 0;
    turned = 0;
    for (Number part = 0; part < search.parts; part++) {
        Word suit[SUITS];            // the ranks of each suit, as bits of suit 0
        for (int s = 0; s < SUITS; s++) suit[s] = 0;
        for (int k = 0; k < BOARD; k++)
            if (k >= known && k < known + search.dealt[part]) {
                const int card = cards[k], name = a.names[turned] >> 8 * (card % SUITS) & 3;
#pragma unroll
                for (int s = 0; s < SUITS; s++) if (s == name) suit[s] |= 1ull << (card - card % SUITS);
            }
        const Number alike = search.symmetry[board];
        Word best = ~0ull;
        Number by = 0;
        for (Number p = 0; p < a.permutations; p++)
            if (alike >> p & 1) {
                Word image = 0;
                const Number names = a.names[p];
#pragma unroll
                for (int s = 0; s < SUITS; s++) image |= suit[s] << (names >> 8 * s & 3);
                if (image < best) { best = image; by = p; }
            }
        Number low = search.first[board], high = search.first[board + 1];
        while (high - low > 1) {
            const Number middle = (low + high) / 2;
            if (search.word[middle] <= best) low = middle; else high = middle;
        }
        board = low;
        turned = a.composed[a.permutations * by + turned];
        known += search.dealt[part];
    }
    return board - search.start;
}

__device__ inline Number entry_of(const Look& look, Word at)
{
    if (look.bytes == 1) return ((const Byte*)look.table)[at];
    if (look.bytes == 2) return ((const unsigned short*)look.table)[at];
    return ((const Number*)look.table)[at];
}

// The number of a hand once its suits are renamed.
__device__ inline Number renamed_hand(Number names, const int* held)
{
    const int first = held[0] - held[0] % SUITS + (names >> 8 * (held[0] % SUITS) & 3);
    if (HELD == 1) return first;
    const int second = held[HELD - 1] - held[HELD - 1] % SUITS + (names >> 8 * (held[HELD - 1] % SUITS) & 3);
    const int low = min(first, second), high = max(first, second);
    return low + high * (high - 1) / 2;
}

__device__ inline Number hand_of(const Byte* card)
{
    if (HELD == 1) return card[0];
    const int low = min(card[0], card[HELD - 1]), high = max(card[0], card[HELD - 1]);
    return low + high * (high - 1) / 2;
}

// The cards of a deal by its number: those of each player, then the board.
__device__ inline void draw_cards(const Deals& a, Word which, int* card)
{
    const Word key = numbered(a.seed, which);
    int from[CARDS], moved[CARDS];   // positions of the deck that other cards have moved to
#pragma unroll
    for (int k = 0; k < CARDS; k++) {
        const int other = k + (int)(uniform(key, k) * (double)(int)(a.deck - k));
        int there = other, here = k;
#pragma unroll
        for (int j = 0; j < CARDS; j++)
            if (j < k) {
                if (from[j] == other) there = moved[j];
                if (from[j] == k) here = moved[j];
            }
        card[k] = there; from[k] = other; moved[k] = here;
    }
}

#if TRUNK
// The class of the board of a deal.
__device__ inline Number class_of(const Deals& a, Word which)
{
    int card[CARDS];
    draw_cards(a, which, card);
    const Look& look = a.look[2 * TRUNK];
    Number turned, other;
    const Number board = locate(a, a.search[look.search], card + 2 * HELD, turned);
    Number found = entry_of(look, (Word)board * look.hands + renamed_hand(a.names[turned], card));
    if (look.bucket) found = look.bucket[(Word)look.labels[locate(a, a.search[look.classes], card + 2 * HELD, other)] * look.codes + found];
    return found / look.inside;
}
#endif

// Deal a hand by its number: writes [2 · round + player] the buckets, and its cards; returns who wins the showdown, as 1, 0 or −1 for player 0.
__device__ inline int deal(const Deals& a, Word which, Number* bucket, int stride, Byte* cards)
{
    int card[CARDS];
    draw_cards(a, which, card);
#if PRICED
#pragma unroll
    for (int k = 0; k < CARDS; k++) cards[k] = (Byte)card[k];
#endif
    Number board[SEARCHES], turned[SEARCHES];
    for (int s = 0; s < SEARCHES; s++) board[s] = locate(a, a.search[s], card + 2 * HELD, turned[s]);
    for (int k = 0; k < 2 * ROUNDS; k++) {
        const Look& look = a.look[k];
        const Number hand = renamed_hand(a.names[turned[look.search]], card + HELD * (k & 1));
        Number found = entry_of(look, (Word)board[look.search] * look.hands + hand);
        if (look.bucket) found = look.bucket[(Word)look.labels[board[look.classes]] * look.codes + found];
        bucket[k * stride] = found;
    }
    Word whole = a.hands.start, bits = 0;
#pragma unroll
    for (int k = 2 * HELD; k < CARDS; k++) { whole += a.hands.key[card[k]]; bits |= a.hands.bit[card[k]]; }
    int strength[2];
#pragma unroll
    for (int player = 0; player < 2; player++) {
        Word mine = whole, set = bits;
#pragma unroll
        for (int k = 0; k < HELD; k++) { mine += a.hands.key[card[player * HELD + k]]; set |= a.hands.bit[card[player * HELD + k]]; }
        strength[player] = strength_of(a.hands, mine, set);
    }
    return (strength[0] > strength[1]) - (strength[0] < strength[1]);
}

// Buckets and outcomes of some deals: for tests.
extern "C" __global__ void look_up_deals(Deals a, Word first, int deals, Number* bucket, int* outcome)
{
    const int d = blockIdx.x * blockDim.x + threadIdx.x;
    Byte cards[CARDS];
    if (d < deals) outcome[d] = deal(a, first + d, bucket + (Word)d * 2 * ROUNDS, 1, cards);
}

#if PRICED
// Mean outcome of an all-in for player 0, in units of the stake, over all boards that may follow.
__device__ inline float price(const Deals& a, const Price& how, const Byte* cards, Byte* rest, int lane)
{
    if (how.size == 0) return a.edge[(Word)hand_of(cards) * a.look->hands + hand_of(cards + HELD)];
    Word taken = 0, key = a.hands.start, bits = 0;
    for (int k = 0; k < 2 * HELD + (int)how.size; k++) taken |= 1ull << cards[k];
    __syncwarp();
    if (lane == 0)
        for (Number c = 0, free = 0; c < a.deck; c++) if (!(taken >> c & 1)) rest[free++] = c;
    __syncwarp();
    for (int k = 2 * HELD; k < 2 * HELD + (int)how.size; k++) { key += a.hands.key[cards[k]]; bits |= a.hands.bit[cards[k]]; }
    Word mine[2], set[2];
    for (int player = 0; player < 2; player++) {
        mine[player] = key; set[player] = bits;
        for (int k = player * HELD; k < player * HELD + HELD; k++) { mine[player] += a.hands.key[cards[k]]; set[player] |= a.hands.bit[cards[k]]; }
    }
    int won = 0;
    for (Number way = lane; way < how.count; way += LANES) {
        Word more = 0, added = 0;
        for (Number k = 0; k < how.missing; k++) {
            const Byte card = rest[how.ways[way * how.missing + k]];
            more += a.hands.key[card]; added |= a.hands.bit[card];
        }
        const int first = strength_of(a.hands, mine[0] + more, set[0] | added), second = strength_of(a.hands, mine[1] + more, set[1] | added);
        won += (first > second) - (first < second);
    }
    won = (int)__reduce_add_sync(ALL, (unsigned)won);
    return (float)((double)won / (double)how.count);
}
#endif

// ── rows of the tables ──

// Words of a row's regrets, and of the whole row: of the first round, in words of eight bytes.
__device__ inline Number regret_words(Number n, bool wide) { return COMPACT && !wide ? (n + 1) / 2 : n; }
__device__ inline Number row_words(Number n, bool wide) { return regret_words(n, wide) + (wide || AVERAGED ? n : 0); }

#if COMPACT
__device__ inline float half_of(Number word, int k) { return __uint_as_float(k & 1 ? word & 0xffff0000u : word << 16); }

// A number rounded to bfloat16, as half of a word: up or down at random, so that the expectation is exact.
__device__ inline Number rounded(float x, Number random) { return (__float_as_uint(x) + (random & 0xffff)) >> 16; }

// Add to two numbers of a word.
__device__ inline void add_halves(Number* word, Number more)
{
#ifdef __CUDA_ARCH__
    asm volatile("red.add.noftz.bf16x2 [%0], %1;" ::"l"(word), "r"(more) : "memory");
#else
    const Number one = __float_as_uint(half_of(*word, 0) + half_of(more, 0));
    const Number other = __float_as_uint(half_of(*word, 1) + half_of(more, 1));
    *word = (one + 0x7fff + (one >> 16 & 1)) >> 16 | ((other + 0x7fff + (other >> 16 & 1)) & 0xffff0000u);
#endif
}
#endif

__device__ inline float regret_at(const Number* row, int k)
{
#if COMPACT
    return half_of(row[k / 2], k);
#else
    return __uint_as_float(row[k]);
#endif
}

__device__ inline void read_regrets(const Walks& a, Word info, int n, float* regret)
{
    const Word at = ROW(info);
    if (WIDE(info)) {
#pragma unroll
        for (int k = 0; k < ACTIONS; k++) regret[k] = k < n ? (float)__ldcg(a.wide + at + k) : 0.0f;
        return;
    }
#if COMPACT
#pragma unroll
    for (int k = 0; k < ACTIONS; k += 2) {
        const Number two = k < n ? __ldcg(a.table + at + k / 2) : 0;
        regret[k] = half_of(two, 0);
        if (k + 1 < ACTIONS) regret[k + 1] = k + 1 < n ? half_of(two, 1) : 0.0f;
    }
    return;
#endif
    const float* row = (const float*)a.table + at;
#if AVERAGED
#pragma unroll
    for (int k = 0; k < ACTIONS; k += 2) {
        float2 two = {0.0f, 0.0f};
        if (k < n) two = __ldcg((const float2*)(row + k));
        regret[k] = two.x;
        if (k + 1 < ACTIONS) regret[k + 1] = k + 1 < n ? two.y : 0.0f;
    }
#else
#pragma unroll
    for (int k = 0; k < ACTIONS; k++) regret[k] = k < n ? __ldcg(row + k) : 0.0f;
#endif
}

__device__ inline void add_regret(const Walks& a, Word info, int k, float more)
{
    const Word at = ROW(info) + k;
    if (WIDE(info)) atomicAdd(a.wide + at, (double)more); else atomicAdd((float*)a.table + at, more);
}

__device__ inline void count_action(const Walks& a, Word info, int n, int k)
{
    const Word at = ROW(info) + regret_words(n, WIDE(info)) + k;
    if (WIDE(info)) atomicAdd((Word*)a.wide + at, 1ull); else atomicAdd(a.table + at, 1u);
}

// One action by regret matching. `left` is uniform.
__device__ inline int drawn(const float* regret, int n, float left)
{
    float whole = 0.0f;
#pragma unroll
    for (int k = 0; k < ACTIONS; k++) whole += max(regret[k], 0.0f);
    if (!(whole > 0.0f)) return min((int)(left * (float)n), n - 1);
    left *= whole;
    int found = 0;
#pragma unroll
    for (int k = 0; k < ACTIONS - 1; k++) {
        left -= max(regret[k], 0.0f);
        if (left >= 0.0f && found == k && k < n - 1) found = k + 1;
    }
    return found;
}

// Add to the regrets of a decision of either player; returns the decision's value for player 0.
__device__ inline float learnt(const Walks& a, Word info, int n, const float* value, Word key)
{
    float regret[ACTIONS], whole = 0.0f, worth = 0.0f, plain = 0.0f;
    read_regrets(a, info, n, regret);
    Number left_out = 0;
#pragma unroll
    for (int k = 0; k < ACTIONS; k++)
        if (k < n) {
            const float positive = max(regret[k], 0.0f);
            float what = value[k];
#if PRUNED
            if (__float_as_uint(what) == LEFT_OUT) { what = 0.0f; left_out |= 1u << k; }
#endif
            whole += positive; worth += positive * what; plain += what;
        }
    worth = whole > 0.0f ? worth / whole : plain / (float)n;
    const float sign = ACTOR(info) ? -1.0f : 1.0f;
#if COMPACT
    if (!WIDE(info)) {
        Word random = 0, more_random = 0;
#pragma unroll
        for (int k = 0; k < ACTIONS; k += 2) {
            if (k % 4 == 0) { random = numbered(key, ROW(info) << 8 | k); more_random = mix(random); }
            Number more = 0;
            for (int j = k; j < k + 2; j++, random >>= 16, more_random >>= 16)
                if (j < ACTIONS && j < n && !(left_out >> j & 1)) {
                    // The sum is rounded at random; if digits are lost, the addend becomes a number with few digits.
                    const Number sum = rounded(regret[j] + sign * (value[j] - worth), (Number)random);
                    const Number step = rounded(__uint_as_float(sum << 16) - regret[j], (Number)more_random);
                    more |= step << 16 * (j & 1);
                }
            if (k < n && more) add_halves(a.table + ROW(info) + k / 2, more);
        }
        return worth;
    }
#elif AVERAGED && __CUDA_ARCH__ >= 900
    if (!WIDE(info)) {  // two at a time
        float* row = (float*)a.table + ROW(info);
#pragma unroll
        for (int k = 0; k < ACTIONS; k += 2) {
            const float one = left_out >> k & 1 ? 0.0f : sign * (value[k] - worth);
            const float other = k + 1 >= ACTIONS || left_out >> (k + 1) & 1 ? 0.0f : sign * (value[k + 1] - worth);
            if (k + 1 < n) atomicAdd((float2*)(row + k), make_float2(one, other)); else if (k < n) atomicAdd(row + k, one);
        }
        return worth;
    }
#endif
#pragma unroll
    for (int k = 0; k < ACTIONS; k++)
        if (k < n && !(left_out >> k & 1)) add_regret(a, info, k, sign * (value[k] - worth));
    return worth;
}

// ── walks ──

struct Warp {                        // shared memory of a warp
    Word which[SIZE + LANES];        // numbers of the deals of this batch, followed by those of the next
#if TRUNK
    Word page[SIZE];                 // [deal] first row of its class
#endif
    Number bucket[2 * ROUNDS][SIZE];
    Word key[2 * SIZE];              // random key of each walk
    Number begin[DEPTH];             // [level] first of the player's decisions
    int shown[SIZE];
#if PRICED
    Byte cards[SIZE][CARDS], rest[64];
    float edge[PRICED][SIZE];
#endif
};

// Winnings of player 0 at the end of a hand, from the payoffs for `player`.
__device__ inline float paid(const Walks& a, const Warp& mine, const Node& end, int walk)
{
    const float* even = a.payoff + end.link + 3 * (walk & 1) + 1;
#if PRICED
    if (end.round < PRICED) {
        const float edge = mine.edge[end.round][walk >> 1];
        return *even + max(edge, -edge) * (even[edge > 0.0f ? 1 : -1] - *even);
    }
#endif
    return even[mine.shown[walk >> 1]];
}

__device__ inline Lists lists_of(const Lists& all, Word warp)
{
    return {all.level + 2 * warp * all.levels, all.own + warp * all.owns, all.value + warp * all.values,
            all.levels, all.owns, all.values, 0};
}

__device__ inline void copy_places(Place* to, const Place* from, Number many, int lane)
{
    for (Number i = lane; i < many; i += LANES) { const Place p = place_at(from + i); put(to + i, p.info, p.link, p.mine); }
}

// The list entry of a decision.
__device__ inline void arrive(const Warp& mine, const Node& node, int walk, Number value, Place* at)
{
    const int wide = node.round == 0;
    Word row = node.first + (Word)mine.bucket[2 * node.round + node.actor][walk >> 1] * row_words(node.count, wide);
#if TRUNK
    if (node.round >= TRUNK) row += mine.page[walk >> 1];
#endif
    const Word info = row | (Word)node.count << 40 | (Word)walk << 46 | (Word)node.actor << 52 | (Word)wide << 53;
    put(at, info, node.link, value);
}

// Run all walks of the `many` deals in `mine`.
__device__ inline void walk_batch(
    const Walks& a, Warp& mine, Number many, Word warp, int lane, Number& decisions, Number& own_decisions, Number& leaves,
    Number& borrowed)
{
    const Number lower = (1u << lane) - 1;
    Lists lists = lists_of(a.lists, warp);
    Place *level = lists.level, *next = lists.level + lists.levels;
    bool large = false;
    const Node root = node_at(a.nodes, 0);
    for (Number i = lane; i < many; i += LANES) arrive(mine, root, i, i, level + i);
    Number owns = 0, values = many;
    int depth = 0;
    while (many) {
        if (lane == 0) mine.begin[depth] = owns;
        depth++;
        __syncwarp();
        Number free = 0;
        for (Number c = 0; c < many; c += LANES) {
            if (!large && (values + LANES * ACTIONS > lists.values || owns + LANES > lists.owns || free + LANES * ACTIONS > lists.levels)) {
                Number mine_now = 0;
                while (!mine_now) {
                    if (lane == 0) mine_now = atomicExch(a.taken, 1u) == 0;
                    mine_now = __shfl_sync(ALL, mine_now, 0);
                }
                __threadfence();
                __syncwarp();
                const Lists more = lists_of(a.large, 0);
                Place* other = level == lists.level ? more.level : more.level + more.levels;
                copy_places(other, level, many, lane);
                level = other;
                other = other == more.level ? more.level + more.levels : more.level;
                copy_places(other, next, free, lane);
                next = other;
                copy_places(more.own, lists.own, owns, lane);
                for (Number i = lane; i < values; i += LANES) more.value[i] = lists.value[i];
                lists = more;
                large = true;
                borrowed += lane == 0;
                __syncwarp();
            }
            const bool acts = c + lane < many;
            Place here = {0, 0, 0};
            int n = 0, from = 0, tries = 0;
            bool own = false;
            Number base = 0, skipped = 0;
            if (acts) {
                here = place_at(level + c + lane);
                n = COUNT(here.info);
                own = ACTOR(here.info) == (WALK(here.info) & 1);
                decisions++;
            }
            Number whole;
            const Number ahead = before(own ? n : 0, lane, whole), mask = __ballot_sync(ALL, own);
            if (own) {
                base = values + ahead;
                put(lists.own + owns + __popc(mask & lower), here.info, base, here.mine);
                tries = n;
#if PRUNED
                const Word key = mine.key[WALK(here.info)];
                if (uniform(key, 0) < MOSTLY) {
                    float regret[ACTIONS];
                    read_regrets(a, here.info, n, regret);
                    bool some = false;
                    const float poor = (float)(-a.prune * ((double)mine.which[WALK(here.info) >> 1] + 1.0 + a.weight));
#pragma unroll
                    for (int k = 0; k < ACTIONS; k++) {
                        some |= regret[k] > 0.0f;
                        if (k < n && regret[k] < poor) skipped |= 1u << k;
                    }
                    if (!some) skipped = 0;
                }
#endif
            } else if (acts) {
                float regret[ACTIONS];
                read_regrets(a, here.info, n, regret);
                from = drawn(regret, n, (float)uniform(mine.key[WALK(here.info)], here.link));
#if AVERAGED
                count_action(a, here.info, n, from);
#endif
                tries = 1;
                base = here.mine - from;
            }
            own_decisions += own;
            values += whole;
            owns += __popc(mask);
            const int most = __reduce_max_sync(ALL, (unsigned)tries);
            for (int j = 0; j < most; j++) {
                const int k = from + j;
                bool inner = false;
                Node child;
                if (j < tries) {
                    child = node_at(a.nodes, here.link + k);
                    if (child.count == 0) {
                        lists.value[base + k] = paid(a, mine, child, WALK(here.info));
                        leaves++;
                    } else if (skipped >> k & 1) {
                        lists.value[base + k] = __uint_as_float(LEFT_OUT);
                        leaves++;
                    } else
                        inner = true;
                }
                const Number deeper = __ballot_sync(ALL, inner);
                if (inner) arrive(mine, child, WALK(here.info), base + k, next + free + __popc(deeper & lower));
                free += __popc(deeper);
            }
        }
        many = free;
        Place* other = level; level = next; next = other;
    }
    __syncwarp();
    Number end = owns;
    for (int l = depth - 1; l >= 0; l--) {
        const Number begin = mine.begin[l];
        for (Number c = begin + lane; c < end; c += LANES) {
            const Place here = place_at(lists.own + c);
            const int n = COUNT(here.info);
            float value[ACTIONS];
#pragma unroll
            for (int k = 0; k < ACTIONS; k++) value[k] = k < n ? lists.value[here.link + k] : 0.0f;
            lists.value[here.mine] = learnt(a, here.info, n, value, mine.key[WALK(here.info)]);
        }
        end = begin;
        __syncwarp();
    }
    if (large) {
        __threadfence();
        if (lane == 0) atomicExch(a.taken, 0u);
    }
}

// Number the deals of a warp's next batch: `waiting` of them are left from the last one. Deals are taken in chunks, and those whose
// class has no frame are skipped. Returns their number; fewer than `size` only at the end.
__device__ inline Number next_deals(const Deals& deals, const Walks& a, Warp& mine, Number waiting, int lane)
{
    while (waiting < a.size) {
        Number batch = 0;
        if (lane == 0) batch = atomicAdd(a.next, 1u);
        batch = __shfl_sync(ALL, batch, 0);
        if (batch >= a.batches) break;
        const Word n = (Word)batch * a.chunk + lane;
        bool taken = lane < a.chunk && n < a.deals;
#if TRUNK
        taken = taken && a.frame[class_of(deals, a.first + n)];
#endif
        const Number all = __ballot_sync(ALL, taken);
        if (taken) mine.which[waiting + __popc(all & ((1u << lane) - 1))] = a.first + n;
        waiting += __popc(all);
    }
    __syncwarp();
    return waiting;
}

extern "C" __global__ void __launch_bounds__(LANES * WARPS, RESIDENT) walk_deals(Deals deals, Walks a)
{
    __shared__ Warp warps[WARPS];
    const int lane = threadIdx.x % LANES, w = threadIdx.x / LANES;
    const Word warp = (Word)blockIdx.x * WARPS + w;
    Warp& mine = warps[w];
    const Word key = mix(deals.seed ^ WALKS);
    Number decisions = 0, own_decisions = 0, leaves = 0, borrowed = 0, waiting = 0;
    while ((waiting = next_deals(deals, a, mine, waiting, lane))) {
        const Number many = min(waiting, a.size);
        for (Number d = lane; d < many; d += LANES) {
            const Word which = mine.which[d];
#if PRICED
            Byte* cards = mine.cards[d];
#else
            Byte* cards = 0;
#endif
            mine.shown[d] = deal(deals, which, &mine.bucket[0][d], SIZE, cards);
            mine.key[2 * d] = numbered(key, 2 * which);
            mine.key[2 * d + 1] = numbered(key, 2 * which + 1);
#if TRUNK
            const Number label = mine.bucket[2 * TRUNK][d] / deals.look[2 * TRUNK].inside;
            mine.page[d] = (Word)(a.frame[label] - 1) * a.stride;
            for (int k = 2 * TRUNK; k < 2 * ROUNDS; k++) mine.bucket[k][d] %= deals.look[k].inside;
#endif
        }
        __syncwarp();
#if PRICED
        for (int r = 0; r < PRICED; r++)
            for (Number d = 0; d < many; d++) {
                const float edge = price(deals, deals.price[r], mine.cards[d], mine.rest, lane);
                if (lane == 0) mine.edge[r][d] = edge;
            }
        __syncwarp();
#endif
        walk_batch(a, mine, 2 * many, warp, lane, decisions, own_decisions, leaves, borrowed);
        __syncwarp();
        waiting -= many;
        const Word left = lane < waiting ? mine.which[many + lane] : 0;  // LANES at most
        __syncwarp();
        if (lane < waiting) mine.which[lane] = left;
    }
    decisions = __reduce_add_sync(ALL, decisions); leaves = __reduce_add_sync(ALL, leaves);
    borrowed = __reduce_add_sync(ALL, borrowed); own_decisions = __reduce_add_sync(ALL, own_decisions);
    if (lane == 0) {
        atomicAdd(a.counted, (Word)decisions);
        atomicAdd(a.counted + 1, (Word)decisions + leaves);
        atomicAdd(a.counted + 2, (Word)borrowed);
        atomicAdd(a.counted + 3, (Word)own_decisions);
    }
}

// ── passes over all rows ──
// A block processes one decision at a time; [decision] `slot` is its first slot, `count` the number of actions, `buckets` the number
// of rows, and `row` the index of its first row in the tables. Decisions of the first round are `wide`.

struct Rows { const Word *slot, *row; const Number *count, *buckets; const Byte* wide; Number* table; double* numbers; };

// Multiply all numbers by a factor. Counts are rounded to integers at random, with the random numbers of the CPU.
extern "C" __global__ void discount_rows(Rows rows, int first, int decisions, double factor, Word key)
{
    for (int d = first + blockIdx.x; d < first + decisions; d += gridDim.x) {
        const bool wide = rows.wide[d];
        const Number n = rows.count[d], h = regret_words(n, wide), words = AVERAGED ? h + n : h;
        const Word from = rows.slot[d] * (1 + AVERAGED), many = (Word)rows.buckets[d] * words;
        const Number step = row_words(n, wide);
        for (Word i = threadIdx.x; i < many; i += blockDim.x) {
            const Number k = i % words;
            const Word at = rows.row[d] + i / words * step + k;
            if (wide) {
                Word* counts = (Word*)rows.numbers;
                if (k < n) rows.numbers[at] *= factor;
                else counts[at] = (Word)(factor * (double)counts[at] + uniform(key, from + i));
            } else if (k < h) {
#if COMPACT
                const Number two = rows.table[at], random = (Number)numbered(key, from + i);
                rows.table[at] = rounded((float)factor * half_of(two, 0), random) | rounded((float)factor * half_of(two, 1), random >> 16) << 16;
#else
                ((float*)rows.table)[at] *= (float)factor;
#endif
            } else {
                rows.table[at] = (Number)(factor * (double)rows.table[at] + uniform(key, from + i));
            }
        }
    }
}

// Keep numbers in range: halve the counts of a row if one is at least `limit`, and its regrets if one is at least `most`, and raise
// regrets below −`least` to −`least`.
extern "C" __global__ void bound_rows(Rows rows, int first, int decisions, Number limit, float most, float least)
{
    for (int d = first + blockIdx.x; d < first + decisions; d += gridDim.x) {
        if (rows.wide[d]) continue;
        const Number n = rows.count[d];
        for (Number b = threadIdx.x; b < rows.buckets[d]; b += blockDim.x) {
            Number* row = rows.table + rows.row[d] + (Word)b * row_words(n, false);
            float top = regret_at(row, 0), low = top;
            for (Number k = 1; k < n; k++) { top = max(top, regret_at(row, k)); low = min(low, regret_at(row, k)); }
            if (top >= most || low < -least)
                for (Number k = 0; k < n; k++) {
                    const float kept = max(top >= most ? 0.5f * regret_at(row, k) : regret_at(row, k), -least);
#if COMPACT
                    row[k / 2] = k & 1 ? (row[k / 2] & 0xffff) | rounded(kept, 0) << 16 : (row[k / 2] & 0xffff0000u) | rounded(kept, 0);
#else
                    row[k] = __float_as_uint(kept);
#endif
                }
#if AVERAGED
            Number* count = row + regret_words(n, false);
            Number largest = 0;
            for (Number k = 0; k < n; k++) largest = max(largest, count[k]);
            if (largest >= limit) for (Number k = 0; k < n; k++) count[k] >>= 1;
#endif
        }
    }
}

// Probabilities as integers, like `external_kernels.quantise`; `shares` begins with slot number `from`.
extern "C" __global__ void quantise_rows(Rows rows, int first, int decisions, int counted, int bytes, Word from, Byte* shares)
{
    const double top = bytes == 1 ? 255.0 : 65535.0;
    for (int d = first + blockIdx.x; d < first + decisions; d += gridDim.x) {
        const Number n = rows.count[d];
        const bool wide = rows.wide[d];
        const Number step = row_words(n, wide), h = regret_words(n, wide);
        const Word* counts = (const Word*)rows.numbers;
        for (Number b = threadIdx.x; b < rows.buckets[d]; b += blockDim.x) {
            const Word at = rows.row[d] + (Word)b * step, slot = rows.slot[d] + (Word)b * n - from;
            double whole = 0.0;
            if (AVERAGED && counted)
                for (Number k = 0; k < n; k++) whole += wide ? (double)counts[at + n + k] : (double)rows.table[at + h + k];
            const bool found = whole > 0.0;
            if (!found) for (Number k = 0; k < n; k++) whole += wide ? max(rows.numbers[at + k], 0.0) : (double)max(regret_at(rows.table + at, k), 0.0f);
            for (Number k = 0; k < n; k++) {
                double part = 0.0;
                if (found) part = wide ? (double)counts[at + n + k] : (double)rows.table[at + h + k];
                else if (whole > 0.0) part = wide ? max(rows.numbers[at + k], 0.0) : (double)max(regret_at(rows.table + at, k), 0.0f);
                const Number share = whole > 0.0 ? (Number)(part / whole * top + 0.5) : 0u;
                if (bytes == 1) shares[slot + k] = (Byte)share; else ((unsigned short*)shares)[slot + k] = (unsigned short)share;
            }
        }
    }
}
