// ---- The encoding of time: 0, then t ← LayerNorm(t + ReLU(W·t + b)), T steps by one block of 1024. Of H numbers.
__device__ __forceinline__ float block_sum(float x, float* space) {
  x = warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) space[threadIdx.x / 32] = x;
  __syncthreads();
  return warp_sum(space[threadIdx.x % 32]);
}

extern "C" __global__ void time_fwd(const float* __restrict__ w, const float* __restrict__ b, const float* __restrict__ nw,
                                    const float* __restrict__ nb, float* time, float* lin, float* stats, int T, int H) {
  extern __shared__ float now[];
  __shared__ float space[32];
  float* sum = now + H;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int h = threadIdx.x; h < H; h += blockDim.x) { now[h] = 0.f; time[h] = 0.f; }
  for (int t = 1; t < T; t++) {
    __syncthreads();
    for (int o = warp; o < H; o += 32) {
      float x = fmaxf(dot_of(w + (size_t)o * H, now, H, lane) + b[o], 0.f);
      if (lane == 0) { lin[(size_t)t * H + o] = x; sum[o] = now[o] + x; }
    }
    __syncthreads();
    float s = 0.f;
    for (int h = threadIdx.x; h < H; h += blockDim.x) s += sum[h];
    float mean = block_sum(s, space) / H;
    s = 0.f;
    for (int h = threadIdx.x; h < H; h += blockDim.x) s += (sum[h] - mean) * (sum[h] - mean);
    float scale = rsqrtf(block_sum(s, space) / H + 1e-6f);
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
      now[h] = (sum[h] - mean) * scale * nw[h] + nb[h];
      time[(size_t)t * H + h] = now[h];
    }
    if (threadIdx.x == 0) { stats[2 * t] = mean; stats[2 * t + 1] = scale; }
  }
}

// From the gradient d [T, H] of all encodings (which grows on the way back): d_lin [T, H], that of W·t + b, row t from t − 1; and
// those of the norm's weights. Row 0 of d_lin is zero.
extern "C" __global__ void time_bwd(const float* __restrict__ w, const float* __restrict__ nw, const float* __restrict__ time,
                                    const float* __restrict__ lin, const float* __restrict__ stats, float* d,
                                    float* __restrict__ d_lin, float* __restrict__ dnw, float* __restrict__ dnb, int T, int H) {
  extern __shared__ float dl[];
  __shared__ float space[32];
  for (int h = threadIdx.x; h < H; h += blockDim.x) dnw[h] = dnb[h] = d_lin[h] = 0.f;
  for (int t = T - 1; t > 0; t--) {
    __syncthreads();
    const float *before = time + (size_t)(t - 1) * H, *l = lin + (size_t)t * H;
    float *own = d + (size_t)t * H, mean = stats[2 * t], scale = stats[2 * t + 1], level = 0.f, slope = 0.f;
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
      float unit = (before[h] + l[h] - mean) * scale, g = own[h];
      dnw[h] += g * unit;
      dnb[h] += g;
      level += g * nw[h];
      slope += g * nw[h] * unit;
    }
    level = block_sum(level, space) / H;
    slope = block_sum(slope, space) / H;
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
      float unit = (before[h] + l[h] - mean) * scale;
      float g = scale * (own[h] * nw[h] - level - unit * slope), m = l[h] > 0.f ? g : 0.f;
      dl[h] = m;
      d_lin[(size_t)t * H + h] = m;
      own[h - H] += g;
    }
    __syncthreads();
    for (int h = threadIdx.x; h < H; h += blockDim.x) {
      float s = 0.f;
      for (int o = 0; o < H; o++) s += dl[o] * w[(size_t)o * H + h];
      own[h - H] += s;
    }
  }
}

// The encoding of time by a cluster of C = H / 32 blocks of H threads. A block computes 32 outputs of each product with W; each of
// its threads keeps 32 elements of W's rows (of its columns in the backward pass). All blocks have the whole vector of a step.
#if __CUDA_ARCH__ >= 900
template <int C> struct Times {
  float weight[32];

  // weight[j]: of this block's number `lane` and the factor's number 32·warp + j.
  __device__ void keep(const float* w, int rank, bool transposed) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 32; j++) {
      int own = 32 * rank + lane, k = 32 * warp + j;
      weight[j] = transposed ? w[k * 32 * C + own] : w[own * 32 * C + k];
    }
  }
  // This block's numbers of the product with x [H]: number `lane`, in every warp.
  __device__ float product(const float* x, float (*part)[33]) const {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float s = 0.f;
#pragma unroll
    for (int j = 0; j < 32; j++) s += weight[j] * x[32 * warp + j];
    part[warp][lane] = s;
    __syncthreads();
    s = 0.f;
#pragma unroll
    for (int k = 0; k < C; k++) s += part[k][lane];
    return s;
  }
  // Sends number `lane` of this block to where all blocks have all; a warp a block.
  __device__ static void tell(float* all, int rank, float value) {
    unsigned at = (unsigned)__cvta_generic_to_shared(all + 32 * rank + threadIdx.x % 32);
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(peer(at, threadIdx.x / 32)), "f"(value) : "memory");
  }
  __device__ static float sum(float x, float* space) {
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) space[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0.f;
#pragma unroll
    for (int k = 0; k < C; k++) x += space[k];
    return x;
  }
};

template <int C> __device__ __forceinline__ void times_forward(const float* w, const float* b, const float* nw, const float* nb, float* time,
                                                               float* lin, float* stats, int T) {
  constexpr int H = 32 * C;
  __shared__ float now[H], arrived[2][H], part[C][33], space[C];
  int h = threadIdx.x, lane = h % 32, rank = rank_in_cluster();
  Times<C> times;
  times.keep(w, rank, false);
  float bias = b[32 * rank + lane], weight = nw[h], level = nb[h], own = 0.f;
  now[h] = 0.f;
  if (rank == 0) time[h] = 0.f;
  cluster_sync();
  for (int t = 1; t < T; t++) {
    float* all = arrived[t % 2];
    times.tell(all, rank, fmaxf(times.product(now, part) + bias, 0.f));
    cluster_sync();
    float x = all[h], both = own + x;
    float mean = times.sum(both, space) / H, away = both - mean;
    float scale = rsqrtf(times.sum(away * away, space) / H + 1e-6f);
    now[h] = own = away * scale * weight + level;
    if (rank == 0) {
      time[(size_t)t * H + h] = own;
      lin[(size_t)t * H + h] = x;
      if (h == 0) { stats[2 * t] = mean; stats[2 * t + 1] = scale; }
    }
    __syncthreads();
  }
}

template <int C> __device__ __forceinline__ void times_backward(const float* w, const float* nw, const float* time, const float* lin,
                                                                const float* stats, const float* d, float* d_lin, float* dnw, float* dnb, int T) {
  constexpr int H = 32 * C;
  __shared__ float dl[H], arrived[2][H], part[C][33], space[C];
  int h = threadIdx.x, rank = rank_in_cluster();
  Times<C> times;
  times.keep(w, rank, true);
  float weight = nw[h], gain = 0.f, lift = 0.f, later = 0.f;
  if (rank == 0) d_lin[h] = 0.f;
  cluster_sync();
  for (int t = T - 1; t > 0; t--) {
    float l = lin[(size_t)t * H + h], before = time[(size_t)(t - 1) * H + h], mean = stats[2 * t], scale = stats[2 * t + 1];
    float own = d[(size_t)t * H + h] + later, unit = (before + l - mean) * scale, g = own * weight;
    gain += own * unit;
    lift += own;
    float level = times.sum(g, space) / H, slope = times.sum(g * unit, space) / H;
    g = scale * (g - level - unit * slope);
    dl[h] = l > 0.f ? g : 0.f;
    if (rank == 0) d_lin[(size_t)t * H + h] = dl[h];
    __syncthreads();
    float* all = arrived[t % 2];
    times.tell(all, rank, times.product(dl, part));
    cluster_sync();
    later = g + all[h];
  }
  if (rank == 0) { dnw[h] = gain; dnb[h] = lift; }
}

#define TIMES(C)                                                                                                             \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(32 * C) time_fwd_##C(                               \
      const float* w, const float* b, const float* nw, const float* nb, float* time, float* lin, float* stats, int T) {      \
    times_forward<C>(w, b, nw, nb, time, lin, stats, T);                                                                     \
  }                                                                                                                          \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(32 * C) time_bwd_##C(                               \
      const float* w, const float* nw, const float* time, const float* lin, const float* stats, const float* d, float* d_lin, \
      float* dnw, float* dnb, int T) {                                                                                       \
    times_backward<C>(w, nw, time, lin, stats, d, d_lin, dnw, dnb, T);                                                       \
  }
TIMES(2)
TIMES(4)
TIMES(8)
TIMES(16)
#endif
