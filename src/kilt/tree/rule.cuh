// The learning rule of `rule.py`: `gpu.kernels` prepends this file to each CUDA file.

#define TINY 1e-37  // smaller sums of positive regrets count as 0

struct Learning {  // discounts of an iteration: see `rule.Discount`
    double above, below, weight, average, average_weight;
    double predictive;       // share of the last regrets that the next strategy expects to occur once more
    double noise;            // smaller differences of values are rounding errors
    int regrets, averages;   // whether the walk updates regrets and averages
    int restricted;          // whether the player is restricted, and does not play the learnt strategy
};

// Update a sum of regrets by `gained`, which counts as 0 up to `least`.
template <class N> __device__ inline N updated_regret(N regret, N gained, N least, N weight, N above, N below)
{
    const N more = gained > least || gained < -least ? weight * gained : 0, total = regret + more;
    return total * (total > 0 ? above : below);
}

// `updated_regret` for `below` = 0: never returns -0.0.
template <class N> __device__ inline N updated_regret_plus(N regret, N gained, N least, N weight, N above)
{
    const N more = gained > least || gained < -least ? weight * gained : 0, total = regret + more;
    return (total > 0 ? total : 0) * above;
}

// Update a sum of strategies by one more strategy.
template <class N> __device__ inline N updated_average(N total, N more, N weight, N kept) { return (total + weight * more) * kept; }
