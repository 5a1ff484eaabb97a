// CUDA twins of `vector_kernels`, `leaf_kernels` and `solve.learning_kernels`: one round of a public tree at a time, on all of its boards.
// Vectors are [place, board, hand]; tables are [row, hand], with the rows of a board adjacent.
//
// In `push_reach` and `pull_values`, a thread has one hand on one board in one block of betting, and processes the nodes of that block
// like the CPU. Hands meet only at leaves: there, the threads of a block share one board (`leaf_sums`).
//
// Compile-time parameters: `number`, float or double; GIVEN, whether some decisions have fixed strategies, which are not learnt.

#define HANDS 2

enum Kind { DECISION, REVEAL, FOLD, SHOWDOWN };
enum Task { FOLLOW, RESPOND, ANSWER };

struct Node {
    double stake;   // stake of a showdown in chips; after a fold, winnings of player 0
    double rake;    // rake in chips, paid by the winner, or half by each player in a split pot
    int kind, actor;
    int child, count;  // first child, number of children
    int row;        // row of the first action within a board
    int slot;       // index of the opponent's reach
    int leaf;       // index of the sums of that reach, at a leaf
    int below;      // block of the next round, after a chance node
};

struct Round {          // a round, for the walk of a player
    long long first_row;  // first row of its first board in tables
    int rows;           // rows from one board to the next in tables
    int boards, boards_before, hands;
    int player, task;   // the player whose values are computed, and that player's task
};

struct __align__(8) Rank {    // rank of a hand on a board, read in one access
    short lower, upper;       // beginning and end of its group of equals; −1 if it shares a card with the board
    unsigned char card_lower[2], card_upper[2];  // the same among the hands that hold its first card, and its second
};

struct __align__(2) Cards {
    unsigned char card[2];
};

__device__ inline number positive(number x) { return x > 0 ? x : 0; }

// A thread has HANDS hands here, half a row apart: more memory accesses in flight give a higher bandwidth.
extern "C" __global__ void push_reach(
    const Node* nodes, const int* begin, const int* above, const int* parent, const unsigned char* given, const Round round,
    const number* up, const number* strategy, number* average, const Learning learning, number* reach)
{
    const int hands = round.hands, apart = (hands + HANDS - 1) / HANDS, hand = blockIdx.x * blockDim.x + threadIdx.x;
    const int board = blockIdx.y, entry = blockIdx.z;
    if (hand >= apart) return;
    const size_t step = (size_t)round.boards * hands, here = (size_t)board * hands + hand;
    const size_t first = round.first_row + (long long)round.rows * board, base = first * hands + hand;
    const number weight = learning.average_weight, kept = learning.average;
    const number* from = up + ((size_t)above[entry] * round.boards_before + parent[board]) * hands + hand;
    number* root = reach + nodes[begin[entry]].slot * step + here;
#pragma unroll
    for (int k = 0; k < HANDS; k++)
        if (hand + k * apart < hands) root[k * apart] = from[k * apart];
    for (int n = begin[entry]; n < begin[entry + 1]; n++) {
        const Node node = nodes[n];
        if (node.kind != DECISION || node.actor == round.player) continue;
        const bool adds = learning.averages && !(GIVEN && given[first + node.row]);
        const number* row = strategy + base + (size_t)node.row * hands;
        number* sums = average + base + (size_t)node.row * hands;
        number scale[HANDS], even[HANDS], arriving[HANDS];
#pragma unroll
        for (int k = 0; k < HANDS; k++) {
            scale[k] = 0;
            arriving[k] = hand + k * apart < hands ? reach[node.slot * step + here + k * apart] : 0;
        }
        for (int a = 0; a < node.count; a++)
#pragma unroll
            for (int k = 0; k < HANDS; k++)
                if (hand + k * apart < hands) scale[k] += positive(row[(size_t)a * hands + k * apart]);
#pragma unroll
        for (int k = 0; k < HANDS; k++) {
            const bool known = scale[k] > (number)TINY;
            even[k] = known ? 0 : (number)1 / node.count;
            scale[k] = known ? 1 / scale[k] : 0;
        }
        for (int a = 0; a < node.count; a++) {
            number* to = reach + nodes[node.child + a].slot * step + here;
#pragma unroll
            for (int k = 0; k < HANDS; k++) {
                if (hand + k * apart >= hands) continue;
                const size_t at = (size_t)a * hands + k * apart;
                const number after = arriving[k] * (positive(row[at]) * scale[k] + even[k]);
                to[k * apart] = after;
                if (adds) sums[at] = updated_average(sums[at], after, weight, kept);
            }
        }
    }
}

// Sums over hands in order of strength give the reach that each hand beats minus the reach that beats it, and the total reach that it may
// meet. Hands with a card in common are subtracted by inclusion–exclusion, with sums over the hands that hold each card [Johanson16 §2.4].
// A block has one board and one reach, with the boards of a reach adjacent, and whole warps. Several threads sum the list of a card, a
// segment each. Shared memory holds the reach, and sums over hands, over the lists of cards, over warps and over segments.
extern "C" __global__ void leaf_sums(
    const number* reach, const int* slots, const short* order, const int* live_hands, const Rank* ranks,
    const short* listed, const Cards* cards, int boards, int hands, int lists, int length, number* beats, number* whole)
{
    extern __shared__ unsigned char memory[];
    number* here = (number*)memory;                    // [hand] gathering from device memory would be slower
    number* prefix = here + hands;                     // [hand + 1]
    number* by_card = prefix + hands + 1;              // [list][place + 1]
    number* warps = by_card + lists * (length + 1);    // [warp]
    number* ends = warps + (blockDim.x + 31) / 32;     // [list][segment]
    const int board = blockIdx.x % boards, leaf = blockIdx.x / boards, thread = threadIdx.x, threads = blockDim.x;
    const int live = live_hands[board], each = (live + threads - 1) / threads;
    const int start = min(thread * each, live), stop = min(start + each, live);
    const int segments = max(threads / lists, 1), segment = (length + segments - 1) / segments;
    const number* from = reach + ((size_t)slots[leaf] * boards + board) * hands;

    for (int hand = thread; hand < hands; hand += threads) here[hand] = from[hand];
    __syncthreads();
    number total = 0;
    for (int i = start; i < stop; i++) {
        total += here[order[(size_t)board * hands + i]];
        prefix[i + 1] = total;
    }
    for (int part = thread; part < lists * segments; part += threads) {
        const int list = part / segments, first = (part % segments) * segment;
        number* sums = by_card + list * (length + 1);
        number held = 0;
        if (first == 0) sums[0] = 0;
        for (int i = first; i < min(first + segment, length); i++) {
            const int hand = listed[((size_t)board * lists + list) * length + i];
            if (hand >= 0) held += here[hand];
            sums[i + 1] = held;
        }
        ends[part] = held;
    }
    number sum = total;
    for (int d = 1; d < 32; d *= 2) {
        const number more = __shfl_up_sync(0xffffffffu, sum, d);
        if ((thread & 31) >= d) sum += more;
    }
    if ((thread & 31) == 31) warps[thread / 32] = sum;
    __syncthreads();
    number before = sum - total;
    for (int w = 0; w < thread / 32; w++) before += warps[w];
    if (thread == 0) prefix[0] = 0;
    for (int i = start; i < stop; i++) prefix[i + 1] += before;
    for (int part = thread; part < lists * segments; part += threads) {
        const int list = part / segments, first = (part % segments) * segment;
        number earlier = 0;
        for (int s = list * segments; s < part; s++) earlier += ends[s];
        for (int i = first; i < min(first + segment, length); i++) by_card[list * (length + 1) + i + 1] += earlier;
    }
    __syncthreads();

    const number all = prefix[live];
    for (int hand = thread; hand < hands; hand += threads) {
        const Rank rank = ranks[(size_t)board * hands + hand];
        const Cards held = cards[hand];
        number won = 0, met = 0;
        if (rank.lower >= 0) {
            won = prefix[rank.lower] + prefix[rank.upper] - all;
            met = all + here[hand];
            for (int k = 0; k < 2; k++) {
                const number* sums = by_card + held.card[k] * (length + 1);
                won -= sums[rank.card_lower[k]] + sums[rank.card_upper[k]] - sums[length];
                met -= sums[length];
            }
        }
        const size_t to = ((size_t)leaf * boards + board) * hands + hand;
        beats[to] = won;
        whole[to] = met;
    }
}

extern "C" __global__ void pull_values(
    const Node* nodes, const int* begin, const unsigned char* given, const Round round, number* strategy, number* regret,
    const Learning learning, const number* beats, const number* whole, const number* chance, number* value)
{
    const int hands = round.hands, hand = blockIdx.x * blockDim.x + threadIdx.x, board = blockIdx.y, entry = blockIdx.z;
    if (hand >= hands) return;
    const size_t step = (size_t)round.boards * hands, here = (size_t)board * hands + hand;
    const size_t first = round.first_row + (long long)round.rows * board, base = first * hands + hand;
    const number sign = round.player == 0 ? 1 : -1, noise = learning.noise;
    const number above = learning.above, below = learning.below, weight = learning.weight;
    const number share = weight * (number)learning.predictive;
    for (int n = begin[entry + 1] - 1; n >= begin[entry]; n--) {
        const Node node = nodes[n];
        const bool learns = !(GIVEN && node.kind == DECISION && given[first + node.row]);
        number worth = 0;
        if (node.kind == FOLD) {
            const number won = sign * (number)node.stake;
            worth = (won > 0 ? won - (number)node.rake : won) * whole[node.leaf * step + here];
        } else if (node.kind == SHOWDOWN) {  // rake: full on wins, half on ties
            const number won = beats[node.leaf * step + here];
            worth = (number)node.stake * won;
            if (node.rake > 0) worth -= (number)(0.5 * node.rake) * (won + whole[node.leaf * step + here]);
        } else if (node.kind == REVEAL) worth = chance[node.below * step + here];
        else if (node.actor != round.player)
            for (int a = 0; a < node.count; a++) worth += value[(node.child + a) * step + here];
        else if (round.task != FOLLOW && learns) {
            worth = value[node.child * step + here];
            for (int a = 1; a < node.count; a++) worth = max(worth, value[(node.child + a) * step + here]);
            for (int a = 0, chosen = 0; round.task == ANSWER && a < node.count; a++) {
                const bool best = !chosen && value[(node.child + a) * step + here] >= worth - noise;
                strategy[base + (size_t)(node.row + a) * hands] = best;
                chosen |= best;
            }
        } else {
            const size_t row = base + (size_t)node.row * hands;
            number total = 0, even = 0;
            for (int a = 0; a < node.count; a++) {
                const number share = positive(strategy[row + (size_t)a * hands]);
                const number found = value[(node.child + a) * step + here];
                total += share;
                worth += share * found;
                even += found;
            }
            worth = total > (number)TINY ? worth / total : even / node.count;
            if (learning.regrets && learns)
                for (int a = 0; a < node.count; a++) {
                    const size_t at = row + (size_t)a * hands;
                    const number gained = value[(node.child + a) * step + here] - worth;
                    const number sum = updated_regret(regret[at], gained, noise, weight, above, below);
                    regret[at] = sum;
                    if (learning.predictive > 0) strategy[at] = updated_regret(sum, gained, noise, share, (number)1, (number)1);
                }
        }
        value[n * step + here] = worth;
    }
}

// Weighted sum of the values of the boards after a board: blocks of 32 hands × some rows of boards.
extern "C" __global__ void add_boards(
    const int* begin, const int* first_board, const number* factor, const number* value, int boards, int boards_before,
    int hands, number* total)
{
    extern __shared__ unsigned char memory[];
    number* parts = (number*)memory;
    const int hand = blockIdx.x * 32 + threadIdx.x, before = blockIdx.y, entry = blockIdx.z;
    number sum = 0;
    if (hand < hands)
        for (int board = first_board[before] + threadIdx.y; board < first_board[before + 1]; board += blockDim.y)
            sum += factor[board] * value[((size_t)begin[entry] * boards + board) * hands + hand];
    parts[threadIdx.y * 32 + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || hand >= hands) return;
    for (int y = 1; y < blockDim.y; y++) sum += parts[y * 32 + threadIdx.x];
    total[((size_t)entry * boards_before + before) * hands + hand] = sum;
}

// The mean over equivalent suits.
extern "C" __global__ void average_over_suits(
    const int* moved, int permutations, const int* symmetry, int boards, int hands, const number* total, number* chance)
{
    const int hand = blockIdx.x * blockDim.x + threadIdx.x, board = blockIdx.y, entry = blockIdx.z;
    if (hand >= hands) return;
    const size_t at = ((size_t)entry * boards + board) * hands;
    number sum = 0;
    int count = 0;
    for (int p = 0; p < permutations; p++)
        if ((symmetry[board] >> p) & 1) {
            sum += total[at + moved[(size_t)p * hands + hand]];
            count++;
        }
    chance[at + hand] = sum / count;
}
