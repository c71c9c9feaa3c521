// ---- Transformers that go step by step ----------------------------------------------------------------------------
// Rows of a matrix are `ld` numbers apart. Backward kernels add to the gradients they give, unless they say otherwise. What
// several threads add to goes through one of them, so that a run repeats itself. What is done with one row is a function, which
// its kernel calls, and `persistent_kernel.cu`; such functions do not promise the compiler that nothing else changes what they read.

// a · b over n numbers, by a warp.
__device__ __forceinline__ float dot_of(const float* a, const float* b, int H, int lane) {
  float s = 0.f;
  for (int i = lane; i < H; i += 32) s += a[i] * b[i];
  return warp_sum(s);
}

#define EACH(i, n) for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (n); i += (size_t)gridDim.x * blockDim.x)

// For N rows of M: y[n] = bias (0: none) + time[n / R] (0: none), whose rows are `ldt` apart. Of several such, one a row of blocks.
struct BiasInit {
  float* y;
  const float *bias, *time;
  int ld, ldt, R, N, M, unused;
};
#define BIAS_INITS 32  // as in `inits.rs`
struct BiasInits { BiasInit all[BIAS_INITS]; };

extern "C" __global__ void bias_init(const __grid_constant__ BiasInits inits) {
  const BiasInit& f = inits.all[blockIdx.y];
  EACH(i, (size_t)f.N * f.M) {
    size_t n = i / f.M, m = i - n * f.M;
    f.y[n * f.ld + m] = (f.bias ? f.bias[m] : 0.f) + (f.time ? f.time[(n / f.R) * f.ldt + m] : 0.f);
  }
}

// C[m, n] = Σ A[m, k] · B[k, n] (+ plus[n]) of several, a row of blocks each, a block 32 x 32 numbers.
struct FoldedProduct {
  const float *a, *b;
  float* c;
  const float* plus;
  int a_m, a_k, b_k, b_n, ldc, m, n, k;
};
#define FOLDED 16  // as in `fold_weights.rs`
struct FoldedProducts { FoldedProduct all[FOLDED]; };

extern "C" __global__ void __launch_bounds__(256) fold_weights(const __grid_constant__ FoldedProducts products) {
  __shared__ float a[32][33], b[32][33];
  const FoldedProduct& s = products.all[blockIdx.y];
  int across = (s.n + 31) / 32, m0 = blockIdx.x / across * 32, n0 = blockIdx.x % across * 32;
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  if (m0 >= s.m) return;
  float sum[4] = {0.f, 0.f, 0.f, 0.f};
  for (int k0 = 0; k0 < s.k; k0 += 32) {
    for (int i = y; i < 32; i += 8) {
      // Lanes go along what lies together.
      int am = s.a_k == 1 ? i : x, ak = s.a_k == 1 ? x : i, bk = s.b_n == 1 ? i : x, bn = s.b_n == 1 ? x : i;
      a[am][ak] = m0 + am < s.m && k0 + ak < s.k ? s.a[(size_t)(m0 + am) * s.a_m + (size_t)(k0 + ak) * s.a_k] : 0.f;
      b[bk][bn] = n0 + bn < s.n && k0 + bk < s.k ? s.b[(size_t)(k0 + bk) * s.b_k + (size_t)(n0 + bn) * s.b_n] : 0.f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k++)
#pragma unroll
      for (int i = 0; i < 4; i++) sum[i] += a[y + 8 * i][k] * b[k][x];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++) {
    int m = m0 + y + 8 * i, n = n0 + x;
    if (m < s.m && n < s.n) s.c[(size_t)m * s.ldc + n] = sum[i] + (s.plus ? s.plus[n] : 0.f);
  }
}

extern "C" __global__ void set_all(unsigned* __restrict__ x, int value, int n) {
  EACH(i, n) x[i] = value;
}

// time[t] += Σ_r x[t·R + r] for T steps of R rows.
extern "C" __global__ void step_sums(const float* __restrict__ x, int ld, float* __restrict__ time, int R, int T, int M) {
  EACH(i, (size_t)T * M) {
    size_t t = i / M, m = i - t * M;
    float s = 0.f;
    for (int r = 0; r < R; r++) s += x[(t * R + r) * ld + m];
    time[i] += s;
  }
}

// out[m] = Σ_n g[n, m] · (other ? other[n, m] : 1). A block of 32 x 32 threads has 32 columns.
extern "C" __global__ void column_sum(const float* __restrict__ g, int ldg, const float* __restrict__ other, int ldo,
                                      float* __restrict__ out, int N, int M) {
  __shared__ float sum[32][33];
  int x = threadIdx.x % 32, y = threadIdx.x / 32, m = blockIdx.x * 32 + x;
  float s = 0.f;
  if (m < M)
    for (int n = y; n < N; n += 32) s += g[(size_t)n * ldg + m] * (other ? other[(size_t)n * ldo + m] : 1.f);
  sum[y][x] = s;
  __syncthreads();
  if (y == 0 && m < M) {
    for (int k = 1; k < 32; k++) s += sum[k][x];
    out[m] = s;
  }
}

// x through ReLU, or through tanh, in place; contiguous.
extern "C" __global__ void act_fwd(float* __restrict__ x, int n, int tanh) {
  EACH(i, n) x[i] = tanh ? tanh_(x[i]) : fmaxf(x[i], 0.f);
}
// Next words, a block of 256 a row of logits with a bias: as `pick`. What the next step begins with is written, too:
// input [H] = table[word] + time.
#define PICK_PARTS 4  // numbers of a row that a thread has at hand
__device__ void pick_word_row(const float* logits, int ldl, const float* bias, const float* u, unsigned* out, unsigned* again, int V,
                              const float* table, const float* time, float* input, int H, int row) {
  __shared__ float best[8], sums[8];
  __shared__ int at[8], action_embeddings;
  int warp = thread() / 32, lane = thread() % 32;
  const float* x = logits + (size_t)row * ldl;
  int share = (V + 255) / 256, from = thread() * share, to = min(from + share, V);
  float top = -3.4e38f;
  int which = V;
  float value[PICK_PARTS];  // of the first of them
#pragma unroll
  for (int i = 0; i < PICK_PARTS; i++) value[i] = from + i < to ? x[from + i] + bias[from + i] : -3.4e38f;
  float r = u[row];
#pragma unroll
  for (int i = 0; i < PICK_PARTS; i++)
    if (value[i] > top) { top = value[i]; which = from + i; }
#pragma unroll 1
  for (int i = from + PICK_PARTS; i < to; i++) {
    float v = x[i] + bias[i];
    if (v > top) { top = v; which = i; }
  }
  for (int s = 16; s; s /= 2) {
    float v = __shfl_xor_sync(~0u, top, s);
    int k = __shfl_xor_sync(~0u, which, s);
    if (v > top || (v == top && k < which)) { top = v; which = k; }
  }
  if (lane == 0) { best[warp] = top; at[warp] = which; }
  __syncthreads();
  for (int k = 0; k < 8; k++)
    if (best[k] > top || (best[k] == top && at[k] < which)) { top = best[k]; which = at[k]; }
  auto chose = [&](int word) {
    if (thread() == 0) out[row] = again[row] = word;
    for (int h = thread(); h < H; h += 256) input[(size_t)row * H + h] = table[(size_t)word * H + h] + time[h];
  };
  if (r < 0.f) return chose(which < V ? which : 0);
  float own = 0.f;
#pragma unroll
  for (int i = 0; i < PICK_PARTS; i++) {
    value[i] = from + i < to ? expf(value[i] - top) : 0.f;
    own += value[i];
  }
#pragma unroll 1
  for (int i = from + PICK_PARTS; i < to; i++) own += expf(x[i] + bias[i] - top);
  float scan = own;
  for (int s = 1; s < 32; s *= 2) {
    float v = __shfl_up_sync(~0u, scan, s);
    if (lane >= s) scan += v;
  }
  if (lane == 31) sums[warp] = scan;
  if (thread() == 0) action_embeddings = which < V ? which : 0;  // where rounding leaves a sliver beyond the last
  __syncthreads();
  float before = 0.f, total = 0.f;
  for (int k = 0; k < 8; k++) {
    if (k < warp) before += sums[k];
    total += sums[k];
  }
  float left = r * total - (before + scan - own);
  bool mine = left >= 0.f && left < own;
  if (mine) {
    int at = -1;
#pragma unroll
    for (int i = 0; i < PICK_PARTS; i++) {
      left -= value[i];
      if (at < 0 && from + i < to && left < 0.f) at = from + i;
    }
#pragma unroll 1
    for (int i = from + PICK_PARTS; at < 0 && i < to; i++) {
      left -= expf(x[i] + bias[i] - top);
      if (left < 0.f) at = i;
    }
    if (at >= 0) action_embeddings = at;
  }
  __syncthreads();
  chose(action_embeddings);
}
extern "C" __global__ void pick_word(const float* logits, int ldl, const float* bias, const float* u, unsigned* out, unsigned* again, int V,
                                     const float* table, const float* time, float* input, int H) {
  pick_word_row(logits, ldl, bias, u, out, again, V, table, time, input, H, blockIdx.x);
}

// The gradient d of what came out becomes that of what went in, in place.
__device__ __forceinline__ void act_bwd_at(float* d, const float* y, int tanh, size_t i) {
  if (tanh) d[i] *= 1.f - y[i] * y[i];
  else if (y[i] <= 0.f) d[i] = 0.f;
}
extern "C" __global__ void act_bwd(float* d, const float* y, int n, int tanh) {
  EACH(i, n) act_bwd_at(d, y, tanh, i);
}

// y[n, m] = x[n, m] · s[m].
extern "C" __global__ void scale_fwd(const float* __restrict__ x, const float* __restrict__ s, float* __restrict__ y, int N, int M) {
  EACH(i, (size_t)N * M) y[i] = x[i] * s[i % M];
}
extern "C" __global__ void scale_bwd(const float* __restrict__ dy, const float* __restrict__ s, float* __restrict__ dx, int N, int M) {
  EACH(i, (size_t)N * M) dx[i] += dy[i] * s[i % M];
}

// ---- Layer normalisation of a + y. A warp a row; stats: mean and 1/deviation. A lane has NORM numbers of a row at hand, all
// asked for at once; rows that are longer are gone through again.
#define NORM 8

__device__ __forceinline__ float4 four_at(const float* x, int m, int M) {
  return m < M ? *(const float4*)(x + m) : float4{0.f, 0.f, 0.f, 0.f};
}
__device__ __forceinline__ float sum_of(const float4& x) { return x.x + x.y + (x.z + x.w); }
__device__ __forceinline__ float4 operator+(const float4& a, const float4& b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ __forceinline__ float4 operator*(const float4& a, const float4& b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ __forceinline__ void add_times(float4& to, float s, const float4& a) {
  to.x += s * a.x;
  to.y += s * a.y;
  to.z += s * a.z;
  to.w += s * a.w;
}
__device__ __forceinline__ float4 affine(const float4& a, float s, float c) { return {a.x * s + c, a.y * s + c, a.z * s + c, a.w * s + c}; }

// The norm for a row of up to 256 elements that are aligned to four.
__device__ __forceinline__ bool in_fours(size_t places, int M) { return M <= 256 && (places % 16 | M % 4) == 0; }
__device__ __forceinline__ void norm_fwd_fours(const float* a, const float* y, const float* w, const float* b, float* out, float* stats, int M) {
  int m = thread() % 32 * 4, k = m + 128;
  float4 x0 = four_at(a, m, M) + four_at(y, m, M), x1 = four_at(a, k, M) + four_at(y, k, M);
  float4 w0 = four_at(w, m, M), w1 = four_at(w, k, M), b0 = four_at(b, m, M), b1 = four_at(b, k, M);
  float mean = warp_sum(sum_of(x0) + sum_of(x1)) / M;
  x0 = affine(x0, 1.f, -mean);
  x1 = affine(x1, 1.f, -mean);
  float scale = rsqrtf(warp_sum((m < M ? sum_of(x0 * x0) : 0.f) + (k < M ? sum_of(x1 * x1) : 0.f)) / M + 1e-6f);
  if (m < M) *(float4*)(out + m) = affine(x0, scale, 0.f) * w0 + b0;
  if (k < M) *(float4*)(out + k) = affine(x1, scale, 0.f) * w1 + b1;
  if (m == 0) *(float2*)stats = {mean, scale};
}

__device__ __forceinline__ void norm_fwd_row(const float* a, int lda, const float* y, int ldy, const float* w, const float* b,
                                             float* out, int ldo, float* stats, int M, int n) {
  int lane = thread() % 32;
  a += (size_t)n * lda; y += (size_t)n * ldy; out += (size_t)n * ldo;
  if (in_fours((size_t)a | (size_t)y | (size_t)w | (size_t)b | (size_t)out | 2 * (size_t)stats, M))
    return norm_fwd_fours(a, y, w, b, out, stats + 2 * n, M);
  float x[NORM], weight[NORM], bias[NORM], sum = 0.f, mean, scale;
#pragma unroll
  for (int i = 0; i < NORM; i++) {
    int m = lane + 32 * i;
    x[i] = m < M ? a[m] + y[m] : 0.f;
    weight[i] = m < M ? w[m] : 0.f;
    bias[i] = m < M ? b[m] : 0.f;
    sum += x[i];
  }
#pragma unroll 1
  for (int m = lane + 32 * NORM; m < M; m += 32) sum += a[m] + y[m];
  mean = warp_sum(sum) / M;
  sum = 0.f;
#pragma unroll
  for (int i = 0; i < NORM; i++)
    if (lane + 32 * i < M) { float d = x[i] - mean; sum += d * d; }
#pragma unroll 1
  for (int m = lane + 32 * NORM; m < M; m += 32) { float d = a[m] + y[m] - mean; sum += d * d; }
  scale = rsqrtf(warp_sum(sum) / M + 1e-6f);
#pragma unroll
  for (int i = 0; i < NORM; i++) {
    int m = lane + 32 * i;
    if (m < M) out[m] = (x[i] - mean) * scale * weight[i] + bias[i];
  }
#pragma unroll 1
  for (int m = lane + 32 * NORM; m < M; m += 32) out[m] = (a[m] + y[m] - mean) * scale * w[m] + b[m];
  if (lane == 0) { stats[2 * n] = mean; stats[2 * n + 1] = scale; }
}
extern "C" __global__ void norm_fwd(const float* a, int lda, const float* y, int ldy, const float* w, const float* b, float* out,
                                    int ldo, float* stats, int N, int M) {
  int n = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (n < N) norm_fwd_row(a, lda, y, ldy, w, b, out, ldo, stats, M, n);
}

// da and dy (0: none) += the gradient of a + y.
__device__ __forceinline__ void norm_bwd_row(const float* a, int lda, const float* y, int ldy, const float* w, const float* stats,
                                             const float* dout, int ldo, float* da, float* dy, int M, int n) {
  int lane = thread() % 32;
  a += (size_t)n * lda; y += (size_t)n * ldy; dout += (size_t)n * ldo;
  if (da) da += (size_t)n * lda;
  if (dy) dy += (size_t)n * ldy;
  float mean = stats[2 * n], scale = stats[2 * n + 1], level = 0.f, slope = 0.f;
  float unit[NORM], g[NORM], old_a[NORM], old_y[NORM];
#pragma unroll
  for (int i = 0; i < NORM; i++) {
    int m = lane + 32 * i;
    bool in = m < M;
    g[i] = in ? dout[m] * w[m] : 0.f;
    unit[i] = in ? (a[m] + y[m] - mean) * scale : 0.f;
    old_a[i] = in && da ? da[m] : 0.f;
    old_y[i] = in && dy ? dy[m] : 0.f;
    level += g[i];
    slope += g[i] * unit[i];
  }
#pragma unroll 1
  for (int m = lane + 32 * NORM; m < M; m += 32) {
    float d = dout[m] * w[m];
    level += d;
    slope += d * (a[m] + y[m] - mean) * scale;
  }
  level = warp_sum(level) / M;
  slope = warp_sum(slope) / M;
#pragma unroll
  for (int i = 0; i < NORM; i++) {
    int m = lane + 32 * i;
    if (m >= M) continue;
    float d = scale * (g[i] - level - unit[i] * slope);
    if (da) da[m] = old_a[i] + d;
    if (dy) dy[m] = old_y[i] + d;
  }
#pragma unroll 1
  for (int m = lane + 32 * NORM; m < M; m += 32) {
    float d = scale * (dout[m] * w[m] - level - (a[m] + y[m] - mean) * scale * slope);
    if (da) da[m] += d;
    if (dy) dy[m] += d;
  }
}
extern "C" __global__ void norm_bwd(const float* a, int lda, const float* y, int ldy, const float* w, const float* stats,
                                    const float* dout, int ldo, float* da, float* dy, int N, int M) {
  int n = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (n < N) norm_bwd_row(a, lda, y, ldy, w, stats, dout, ldo, da, dy, M, n);
}

// dw and db of all rows: not added to. A block of 32 x 32 threads has 32 columns.
extern "C" __global__ void norm_params(const float* __restrict__ a, int lda, const float* __restrict__ y, int ldy,
                                       const float* __restrict__ stats, const float* __restrict__ dout, int ldo,
                                       float* __restrict__ dw, float* __restrict__ db, int N, int M) {
  __shared__ float sw[32][33], sb[32][33];
  int x = threadIdx.x % 32, r = threadIdx.x / 32, m = blockIdx.x * 32 + x;
  float gw = 0.f, gb = 0.f;
  if (m < M)
    for (int n = r; n < N; n += 32) {
      float d = dout[(size_t)n * ldo + m];
      gw += d * (a[(size_t)n * lda + m] + y[(size_t)n * ldy + m] - stats[2 * n]) * stats[2 * n + 1];
      gb += d;
    }
  sw[r][x] = gw;
  sb[r][x] = gb;
  __syncthreads();
  if (r == 0 && m < M) {
    for (int k = 1; k < 32; k++) { gw += sw[k][x]; gb += sb[k][x]; }
    dw[m] = gw;
    db[m] = gb;
  }
}

// ---- Multi-head attention. Query i of memory b is row b·sb + i·si; entry j of memory b begins at kv + b·kb + j·kj, its value
// `voff` further on. len (0: n0 for all) is the number of entries. w [rows, heads, ldw]: weights. A warp a query and head.
struct Heads {
  int B, sb, Q, si, kb, kj, voff, heads, size, ldw, n0;
  float scale;
};

#define HEAD_PARTS 4  // numbers of a head that a lane has: heads have at most 128
#define ENTRIES 16    // of a memory that are asked for at once

// out[j] = scale · a · entry j, of n entries `step` apart, by a warp. Lanes share entries, so that they read what lies together.
__device__ __forceinline__ void dots(const float* a, const float* entries, size_t step, int n, int size, float scale, float* out) {
  int lane = thread() % 32, share = size / 4;
  if (size % 4 == 0 && 32 % share == 0 && ((size_t)a | (size_t)entries | 4 * step) % 16 == 0) {
    int part = lane % share, own = lane / share, at_once = 32 / share;
    float4 x = *(const float4*)(a + 4 * part);
#pragma unroll 1
    for (int from = own; from - own < n; from += 8 * at_once) {
      float4 y[8];
      float s[8];
      const float* at = entries + (size_t)from * step + 4 * part;
#pragma unroll
      for (int c = 0; c < 8; c++) {
        y[c] = {0.f, 0.f, 0.f, 0.f};
        if (from + c * at_once < n) y[c] = *(const float4*)at;
        at += at_once * step;
      }
#pragma unroll
      for (int c = 0; c < 8; c++) s[c] = x.x * y[c].x + x.y * y[c].y + x.z * y[c].z + x.w * y[c].w;
#pragma unroll 1
      for (int d = share / 2; d; d /= 2)
#pragma unroll
        for (int c = 0; c < 8; c++) s[c] += __shfl_xor_sync(~0u, s[c], d);
#pragma unroll
      for (int c = 0; c < 8; c++)
        if (part == 0 && from + c * at_once < n) out[from + c * at_once] = s[c] * scale;
    }
  } else
#pragma unroll 1
    for (int j = lane; j < n; j += 32) {
      float s = 0.f;
#pragma unroll 1
      for (int i = 0; i < size; i++) s += a[i] * entries[(size_t)j * step + i];
      out[j] = scale * s;
    }
  __syncwarp();
}

// Weights of n entries, the softmax of scores the greatest of which is `top`: in their place and to w. By a warp.
__device__ __forceinline__ void weigh(float* score, float* w, int n, float top, int lane) {
  float sum = 0.f;
#pragma unroll 1
  for (int j = lane; j < n; j += 32) {
    float e = expf(score[j] - top);
    score[j] = e;
    sum += e;
  }
  sum = 1.f / warp_sum(sum);
#pragma unroll 1
  for (int j = lane; j < n; j += 32) w[j] = score[j] = score[j] * sum;
  __syncwarp();
}

// Where numbers lie in fours. Lanes have an entry each for weights, and four numbers of the head in some entries for the rest;
// DEEP of them are asked for at once.
template <int DEEP> __device__ __forceinline__ void attend_fwd_fours(const float* q, const float* kv, float* out, float* w, const Heads& s, int n,
                                                                     float* score) {
  int lane = thread() % 32, share = s.size / 4, part = lane % share, own = lane / share, at_once = 32 / share;
  const float4 none = {0.f, 0.f, 0.f, 0.f};
  float4 x = *(const float4*)(q + 4 * part), key[DEEP], value[DEEP];
  int step = at_once * s.kj, size = DEEP * at_once;
  const float* at = kv + own * s.kj + 4 * part;
  float top = -3.4e38f;
#pragma unroll 1
  for (int from = 0; from < n; from += size, at += DEEP * (size_t)step) {
    int left = n - from - own;
#pragma unroll
    for (int c = 0; c < DEEP; c++) key[c] = c * at_once < left ? *(const float4*)(at + c * (size_t)step) : none;
    if (from == 0)  // before anything is waited for
#pragma unroll
      for (int c = 0; c < DEEP; c++) value[c] = c * at_once < left ? *(const float4*)(at + s.voff + c * (size_t)step) : none;
    float dot[DEEP];
#pragma unroll
    for (int c = 0; c < DEEP; c++) dot[c] = x.x * key[c].x + x.y * key[c].y + x.z * key[c].z + x.w * key[c].w;
#pragma unroll 1
    for (int d = share / 2; d; d /= 2)
#pragma unroll
      for (int c = 0; c < DEEP; c++) dot[c] += __shfl_xor_sync(~0u, dot[c], d);
#pragma unroll
    for (int c = 0; c < DEEP; c++)
      if (c * at_once < left) {
        dot[c] *= s.scale;
        top = fmaxf(top, dot[c]);
        if (part == 0) score[from + own + c * at_once] = dot[c];
      }
  }
  top = warp_max(top);
  __syncwarp();
  weigh(score, w, n, top, lane);
  float4 seen = none;
  at = kv + own * s.kj + 4 * part + s.voff;
#pragma unroll 1
  for (int from = 0; from < n; from += size, at += DEEP * (size_t)step) {
    int left = n - from - own;
    if (from)
#pragma unroll
      for (int c = 0; c < DEEP; c++) value[c] = c * at_once < left ? *(const float4*)(at + c * (size_t)step) : none;
#pragma unroll
    for (int c = 0; c < DEEP; c++) {
      float weight = c * at_once < left ? score[from + own + c * at_once] : 0.f;
      add_times(seen, weight, value[c]);
    }
  }
#pragma unroll 1
  for (int d = share; d < 32; d *= 2) {
    seen.x += __shfl_xor_sync(~0u, seen.x, d);
    seen.y += __shfl_xor_sync(~0u, seen.y, d);
    seen.z += __shfl_xor_sync(~0u, seen.z, d);
    seen.w += __shfl_xor_sync(~0u, seen.w, d);
  }
  if (own == 0) *(float4*)(out + 4 * part) = seen;
}

__device__ __forceinline__ void attend_fwd_row(const float* q, int ldq, const float* kv, const unsigned* len, float* out, int ldo,
                                               float* w, const Heads& s, int b, int row, int h, float* score) {
  int lane = thread() % 32, n = len ? min((int)len[b], s.n0) : s.n0;
  q += (size_t)row * ldq + h * s.size;
  w += ((size_t)row * s.heads + h) * s.ldw;
  kv += (size_t)b * s.kb + h * s.size;
  out += (size_t)row * ldo + h * s.size;
  if (s.size % 4 == 0 && 128 % s.size == 0 && (((size_t)q | (size_t)kv | (size_t)out) % 16 | (s.kj | s.voff) % 4) == 0)
    return n * s.size <= 4 * 128 ? attend_fwd_fours<4>(q, kv, out, w, s, n, score) : attend_fwd_fours<8>(q, kv, out, w, s, n, score);
  dots(q, kv, s.kj, n, s.size, s.scale, score);
  float top = -3.4e38f;
#pragma unroll 1
  for (int j = lane; j < n; j += 32) top = fmaxf(top, score[j]);
  top = warp_max(top);
  weigh(score, w, n, top, lane);
#pragma unroll 1
  for (int d = lane; d < s.size; d += 32) {
    float seen = 0.f;
#pragma unroll 1
    for (int j = 0; j < n; j++) seen += score[j] * kv[s.voff + d + (size_t)j * s.kj];
    out[d] = seen;
  }
}
extern "C" __global__ void attend_fwd(const float* q, int ldq, const float* kv, const unsigned* len, float* out, int ldo, float* w, Heads s) {
  extern __shared__ float scratch[];
  int item = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (item >= s.B * s.Q * s.heads) return;
  int b = item / s.heads % s.B, row = b * s.sb + item / s.heads / s.B * s.si;
  attend_fwd_row(q, ldq, kv, len, out, ldo, w, s, b, row, item % s.heads, scratch + thread() / 32 * s.ldw);
}

// dq += the gradient of the queries; ds [rows, heads, ldw] = that of the scores, for attend_memory_bwd. Where a memory has
// one query (own), dkv += that of its entries at once.
__device__ __forceinline__ void attend_bwd_row(const float* q, int ldq, const float* kv, const unsigned* len, const float* dout,
                                               int ldo, const float* w, float* ds, float* dq, float* dkv, int own, const Heads& s,
                                               int b, int row, int h, float* scratch) {
  int lane = thread() % 32, n = len ? min((int)len[b], s.n0) : s.n0;
  float *slope = scratch, *weight = slope + s.ldw;
  size_t at = ((size_t)row * s.heads + h) * s.ldw, entry = (size_t)b * s.kb + h * s.size;
  const float* g = dout + (size_t)row * ldo + h * s.size;
  float mean = 0.f;
  dots(g, kv + entry + s.voff, s.kj, n, s.size, 1.f, slope);
#pragma unroll 1
  for (int j = lane; j < n; j += 32) {
    weight[j] = w[at + j];
    mean += weight[j] * slope[j];
  }
  mean = warp_sum(mean);
#pragma unroll 1
  for (int j = lane; j < n; j += 32) ds[at + j] = slope[j] = weight[j] * (slope[j] - mean) * s.scale;
  __syncwarp();
#pragma unroll 1
  for (int d = lane; d < s.size; d += 32) {
    float *to = dq + (size_t)row * ldq + h * s.size + d;
    float before = *to, sum = 0.f, query = q[(size_t)row * ldq + h * s.size + d], grad = g[d];
    size_t k = entry + d;
    // Some entries at once: what is added to is read before any of it is written.
#pragma unroll 1
    for (int from = 0; from < n; from += ENTRIES / 2) {
      float key[ENTRIES / 2], dk[ENTRIES / 2], dv[ENTRIES / 2];
#pragma unroll
      for (int c = 0; c < ENTRIES / 2; c++) {
        size_t e = k + (size_t)(from + c) * s.kj;
        bool in = from + c < n;
        key[c] = in ? kv[e] : 0.f;
        dk[c] = in && own ? dkv[e] : 0.f;
        dv[c] = in && own ? dkv[e + s.voff] : 0.f;
      }
#pragma unroll
      for (int c = 0; c < ENTRIES / 2; c++) {
        if (from + c >= n) continue;
        sum += slope[from + c] * key[c];
        if (!own) continue;
        size_t e = k + (size_t)(from + c) * s.kj;
        dkv[e] = dk[c] + slope[from + c] * query;
        dkv[e + s.voff] = dv[c] + weight[from + c] * grad;
      }
    }
    *to = before + sum;
  }
}
extern "C" __global__ void attend_bwd(const float* q, int ldq, const float* kv, const unsigned* len, const float* dout, int ldo,
                                      const float* w, float* ds, float* dq, float* dkv, int own, Heads s) {
  extern __shared__ float scratch[];
  int item = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (item >= s.B * s.Q * s.heads) return;
  int b = item / s.heads % s.B, row = b * s.sb + item / s.heads / s.B * s.si;
  attend_bwd_row(q, ldq, kv, len, dout, ldo, w, ds, dq, dkv, own, s, b, row, item % s.heads, scratch + thread() / 32 * 2 * s.ldw);
}

// dkv += the gradient of entries that several queries look at. A warp an entry and head.
extern "C" __global__ void attend_memory_bwd(const float* __restrict__ q, int ldq, const unsigned* __restrict__ len,
                                             const float* __restrict__ dout, int ldo, const float* __restrict__ w,
                                             const float* __restrict__ ds, float* __restrict__ dkv, Heads s) {
  int item = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (item >= s.B * s.n0 * s.heads) return;
  int h = item % s.heads, j = item / s.heads % s.n0, b = item / s.heads / s.n0;
  if (len && j >= (int)len[b]) return;
  float dk[HEAD_PARTS], dv[HEAD_PARTS];
  for (int c = 0; c < HEAD_PARTS; c++) dk[c] = dv[c] = 0.f;
#pragma unroll 4
  for (int i = 0; i < s.Q; i++) {
    int row = b * s.sb + i * s.si;
    size_t at = ((size_t)row * s.heads + h) * s.ldw + j;
    float slope = ds[at], weight = w[at];
    for (int c = 0; c < HEAD_PARTS && 32 * c < s.size; c++) {
      int d = lane + 32 * c;
      if (d >= s.size) continue;
      dk[c] += slope * q[(size_t)row * ldq + h * s.size + d];
      dv[c] += weight * dout[(size_t)row * ldo + h * s.size + d];
    }
  }
  for (int c = 0; c < HEAD_PARTS && 32 * c < s.size; c++) {
    int d = lane + 32 * c;
    if (d >= s.size) continue;
    size_t k = (size_t)b * s.kb + (size_t)j * s.kj + h * s.size + d;
    dkv[k] += dk[c];
    dkv[k + s.voff] += dv[c];
  }
}

// ---- Words and sequences

// x[n] = scale · table[ids[n]] (zeros for padding) + positions[n % L] (0: none).
extern "C" __global__ void embed_fwd(const float* __restrict__ table, const unsigned* __restrict__ ids, float scale,
                                     const float* __restrict__ positions, int L, float* __restrict__ x, int N, int H) {
  EACH(i, (size_t)N * H) {
    size_t n = i / H, h = i - n * H;
    unsigned id = ids[n];
    x[i] = (id ? scale * table[(size_t)id * H + h] : 0.f) + (positions ? positions[(n % L) * H + h] : 0.f);
  }
}

// d[v] = scale · Σ dx[n] over the n with ids[n] = v, zeros for padding: not added to. A block of 8 warps 8 symbols.
extern "C" __global__ void embed_bwd(const float* __restrict__ dx, const unsigned* __restrict__ ids, float scale,
                                     float* __restrict__ d, int N, int H, int V) {
  int v = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (v >= V) return;
  d += (size_t)v * H;
  for (int h = lane; h < H; h += 32) d[h] = 0.f;
  if (v == 0) return;
  for (int from = 0; from < N; from += 32) {
    unsigned hits = __ballot_sync(~0u, from + lane < N && ids[from + lane] == (unsigned)v);
    for (; hits; hits &= hits - 1) {
      const float* row = dx + (size_t)(from + __ffs(hits) - 1) * H;
      for (int h = lane; h < H; h += 32) d[h] += scale * row[h];
    }
  }
}

// x[r] = table[ids[r]] + time.
extern "C" __global__ void word_in(const float* __restrict__ table, const unsigned* __restrict__ ids, const float* __restrict__ time,
                                   float* __restrict__ x, int R, int H) {
  EACH(i, (size_t)R * H) {
    size_t r = i / H, h = i - r * H;
    x[i] = table[(size_t)ids[r] * H + h] + time[h];
  }
}

// out[b] = the mean of the first count[b] of the L rows of x [B, L, H].
extern "C" __global__ void mean_fwd(const float* __restrict__ x, const unsigned* __restrict__ count, float* __restrict__ out,
                                    int B, int L, int H) {
  EACH(i, (size_t)B * H) {
    size_t b = i / H, h = i - b * H;
    int n = min((int)count[b], L);
    float s = 0.f;
    for (int l = 0; l < n; l++) s += x[(b * L + l) * H + h];
    out[i] = s / count[b];
  }
}
extern "C" __global__ void mean_bwd(const float* __restrict__ d, const unsigned* __restrict__ count, float* __restrict__ dx,
                                    int B, int L, int H) {
  EACH(i, (size_t)B * L * H) {
    size_t row = i / H, h = i - row * H, b = row / L;
    if (row - b * L < count[b]) dx[i] += d[b * H + h] / count[b];
  }
}

// out[k·B + b] = x[b] for `copies` k.
extern "C" __global__ void repeat_fwd(const float* __restrict__ x, float* __restrict__ out, int n, int copies) {
  EACH(i, (size_t)n * copies) out[i] = x[i % n];
}
extern "C" __global__ void repeat_bwd(const float* __restrict__ d, float* __restrict__ dx, int n, int copies) {
  EACH(i, (size_t)n) {
    float s = 0.f;
    for (int k = 0; k < copies; k++) s += d[(size_t)k * n + i];
    dx[i] += s;
  }
}

// out[b] = x[rows[b]]; the rows are different ones.
extern "C" __global__ void take_fwd(const float* __restrict__ x, const unsigned* __restrict__ rows, float* __restrict__ out, int B, int H) {
  EACH(i, (size_t)B * H) out[i] = x[(size_t)rows[i / H] * H + i % H];
}
extern "C" __global__ void take_bwd(const float* __restrict__ d, const unsigned* __restrict__ rows, float* __restrict__ dx, int B, int H) {
  EACH(i, (size_t)B * H) dx[(size_t)rows[i / H] * H + i % H] += d[i];
}
