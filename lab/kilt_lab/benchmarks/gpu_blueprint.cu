// The bottleneck of walks: a read of eight bytes and additions to two adjacent words, at random places of a table.

extern "C" __global__ void update_at_random(unsigned int* table, long long pairs, int times, long long seed)
{
    unsigned long long word = ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9E3779B97F4A7C15ull + seed;
    for (int k = 0; k < times; k++) {
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
        word ^= word >> 31;
        unsigned int* at = table + 2 * (word % (unsigned long long)pairs);
        const uint2 seen = __ldcg((const uint2*)at);
        atomicAdd((float*)at, __uint_as_float(seen.x & 1u));
        atomicAdd(at + 1, seen.y >> 31);
        word += seen.y;
    }
}
