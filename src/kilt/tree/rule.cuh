// The rule by which players learn, as `rule.py` has it: `gpu.kernels` puts this before each CUDA file.

#define TINY 1e-37  // sums of positive regrets up to this count as none

struct Learning {  // how an iteration enters the tables: see `rule.Discount`
    double above, below, weight, average, average_weight;
    double predictive;       // the share of the last regrets that the next strategy takes to come once more
    double noise;            // values that differ by less are equal but for rounding
    int regrets, averages;   // whether the walk updates regrets and averages
    int restricted;          // whether the player plays something else than what was learnt
};

// A sum of regrets after one more, `gained`, which counts as 0 where it is not larger than `least`.
template <class N> __device__ inline N learnt(N regret, N gained, N least, N weight, N above, N below)
{
    const N more = gained > least || gained < -least ? weight * gained : 0, total = regret + more;
    return total * (total > 0 ? above : below);
}

// The same where `below` is 0: never -0.0.
template <class N> __device__ inline N learnt_plus(N regret, N gained, N least, N weight, N above)
{
    const N more = gained > least || gained < -least ? weight * gained : 0, total = regret + more;
    return (total > 0 ? total : 0) * above;
}

// A sum of strategies after one more.
template <class N> __device__ inline N averaged(N total, N more, N weight, N kept) { return (total + weight * more) * kept; }
