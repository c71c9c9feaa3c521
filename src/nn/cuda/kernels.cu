// Kernels of the fused operations, compiled when the program first uses a GPU. Tensors are row-major float32, sequences
// time-major. A warp has 32 lanes; reductions are in a fixed order, so that a run repeats itself.
// threadIdx.x, asked for anew: a kernel that does one of many things does not keep what it would need for all.
__device__ __forceinline__ int thread() {
  int t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}
__device__ __forceinline__ float sigm(float x) { return 1.f / (1.f + expf(-x)); }
__device__ __forceinline__ float tanh_(float x) { return tanhf(x); }
__device__ __forceinline__ float warp_sum(float x) {
  for (int s = 16; s; s /= 2) x += __shfl_xor_sync(~0u, x, s);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
  for (int s = 16; s; s /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, s));
  return x;
}

// ---- LSTM ---------------------------------------------------------------------------------------------------------

// One cell step of B rows. Of gh, h_prev and c_prev, what is not given is zero. The input projection is a row of `table` [V, 4H] for each symbol, or the mean over the row's
// G symbols (padding counts if count_pad). Rows that have ended carry their state. act (gates after their functions) is
// kept for the backward pass where given; c_last, where given, gets the cells as well.
extern "C" __global__ void lstm_cell_fwd(const float* __restrict__ table, const unsigned* __restrict__ ids, int G,
                                         int count_pad, const float* __restrict__ gh, const float* h_prev,
                                         const float* c_prev, float* h, float* c, float* c_last, float* __restrict__ act,
                                         const unsigned* __restrict__ len, int step, int B, int H) {
  int n = B * H;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int b = i / H, j = i - b * H;
    float hh = h_prev ? h_prev[i] : 0.f, cc = c_prev ? c_prev[i] : 0.f;
    if (step < (int)len[b]) {
      size_t o = (size_t)b * 4 * H + j;
      float x0, x1, x2, x3;
      if (G == 1) {
        const float* t = table + (size_t)ids[b] * 4 * H + j;
        x0 = t[0]; x1 = t[H]; x2 = t[2 * H]; x3 = t[3 * H];
      } else {
        x0 = x1 = x2 = x3 = 0.f;
        int k = 0;
        for (int g = 0; g < G; g++) {
          unsigned id = ids[b * G + g];
          if (id == 0 && !count_pad) continue;
          const float* t = table + (size_t)id * 4 * H + j;
          x0 += t[0]; x1 += t[H]; x2 += t[2 * H]; x3 += t[3 * H];
          k++;
        }
        float w = k ? 1.f / k : 0.f;
        x0 *= w; x1 *= w; x2 *= w; x3 *= w;
      }
      if (gh) { x0 += gh[o]; x1 += gh[o + H]; x2 += gh[o + 2 * H]; x3 += gh[o + 3 * H]; }
      float ig = sigm(x0), fg = sigm(x1), gg = tanh_(x2), og = sigm(x3);
      cc = fg * cc + ig * gg;
      hh = og * tanh_(cc);
      if (act) { act[o] = ig; act[o + H] = fg; act[o + 2 * H] = gg; act[o + 3 * H] = og; }
    }
    c[i] = cc;
    h[i] = hh;
    if (c_last) c_last[i] = cc;
  }
}

// dh holds the gradient from the later step (dh_in and dc_in may be missing at the last); on return what the product with W adds to:
// zero for a live row, the gradient itself for a carried one.
extern "C" __global__ void lstm_cell_bwd(const float* __restrict__ act, const float* __restrict__ c_prev,
                                         const float* __restrict__ c, const float* __restrict__ grad_h,
                                         const float* dh_in, const float* dc_in,
                                         float* __restrict__ dgates, float* dh, float* dc,
                                         const unsigned* __restrict__ len, int step, int B, int H) {
  int n = B * H;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int b = i / H, j = i - b * H;
    size_t o = (size_t)b * 4 * H + j;
    float g = grad_h[i] + (dh_in ? dh_in[i] : 0.f);
    float d = dc_in ? dc_in[i] : 0.f;
    if (step < (int)len[b]) {
      float ig = act[o], fg = act[o + H], gg = act[o + 2 * H], og = act[o + 3 * H];
      float tc = tanh_(c[i]);
      d += g * og * (1.f - tc * tc);
      dgates[o] = d * gg * ig * (1.f - ig);
      dgates[o + H] = c_prev ? d * c_prev[i] * fg * (1.f - fg) : 0.f;
      dgates[o + 2 * H] = d * ig * (1.f - gg * gg);
      dgates[o + 3 * H] = g * tc * og * (1.f - og);
      d *= fg;
      g = 0.f;
    } else {
      dgates[o] = dgates[o + H] = dgates[o + 2 * H] = dgates[o + 3 * H] = 0.f;
    }
    dh[i] = g;
    dc[i] = d;
  }
}

// [N, V]: the share of each symbol among the G symbols of a row (padding counts if count_pad).
extern "C" __global__ void bags(const unsigned* __restrict__ ids, int G, int count_pad, int N, int V, float* __restrict__ out) {
  size_t n = (size_t)N * V;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int row = i / V;
    unsigned v = i - (size_t)row * V;
    int real = 0, hits = 0;
    for (int g = 0; g < G; g++) {
      unsigned id = ids[(size_t)row * G + g];
      bool counts = count_pad || id != 0 || G == 1;
      real += counts;
      hits += counts && id == v;
    }
    out[i] = real ? (float)hits / real : 0.f;
  }
}

// ---- Linear layers ------------------------------------------------------------------------------------------------

// y[N, M] += bias, through tanh if asked.
extern "C" __global__ void bias_act(float* __restrict__ y, const float* __restrict__ bias, int N, int M, int tanh) {
  size_t n = (size_t)N * M;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    float v = y[i] + bias[i % M];
    y[i] = tanh ? tanh_(v) : v;
  }
}

// out = a + b.
extern "C" __global__ void add2(const float* a, const float* b, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = a[i] + b[i];
}

// out = g·(1 − y²).
extern "C" __global__ void tanh_bwd(const float* g, const float* __restrict__ y, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = g[i] * (1.f - y[i] * y[i]);
}

// Column sums of g[N, M] in P parts: part[p, M] over rows p, p + P, …; a block has 32 columns by 8 rows.
extern "C" __global__ void column_parts(const float* __restrict__ g, float* __restrict__ part, int N, int M) {
  __shared__ float sum[8][33];
  int x = threadIdx.x % 32, y = threadIdx.x / 32, col = blockIdx.x * 32 + x, P = gridDim.y;
  float s = 0.f;
  if (col < M)
    for (int r = blockIdx.y + P * y; r < N; r += P * 8) s += g[(size_t)r * M + col];
  sum[y][x] = s;
  __syncthreads();
  if (y == 0 && col < M) {
    for (int k = 1; k < 8; k++) s += sum[k][x];
    part[(size_t)blockIdx.y * M + col] = s;
  }
}

extern "C" __global__ void column_sums(const float* __restrict__ part, float* __restrict__ out, int P, int M) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= M) return;
  float s = 0.f;
  for (int p = 0; p < P; p++) s += part[(size_t)p * M + col];
  out[col] = s;
}

// ---- Attention ----------------------------------------------------------------------------------------------------

// Softmax of scores [B, Q, ld] over their first S columns, in place; columns beyond len[b] are masked, those beyond S
// become zero. A warp a row.
extern "C" __global__ void softmax_rows(float* __restrict__ s, const unsigned* __restrict__ len, int B, int Q, int S, int ld) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= B * Q) return;
  int real = min((int)len[row / Q], S);
  float* x = s + (size_t)row * ld;
  float top = -3.4e38f;
  for (int i = lane; i < real; i += 32) top = fmaxf(top, x[i]);
  top = warp_max(top);
  float sum = 0.f;
  for (int i = lane; i < real; i += 32) sum += expf(x[i] - top);
  sum = warp_sum(sum);
  float w = sum > 0.f ? 1.f / sum : 0.f;
  for (int i = lane; i < ld; i += 32) x[i] = i < real ? expf(x[i] - top) * w : 0.f;
}

// d[…] (the gradient of the weights p) becomes that of the scores, in place: p·(d − Σ p·d). A warp a row.
extern "C" __global__ void softmax_bwd(const float* __restrict__ p, float* __restrict__ d, int rows, int S, int ld) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  p += (size_t)row * ld;
  d += (size_t)row * ld;
  float sum = 0.f;
  for (int i = lane; i < S; i += 32) sum += p[i] * d[i];
  sum = warp_sum(sum);
  for (int i = lane; i < ld; i += 32) d[i] = i < S ? p[i] * (d[i] - sum) : 0.f;
}

// ---- Loss ---------------------------------------------------------------------------------------------------------

// For rows of logits [N, V]: lse[n] = log Σ exp, part[n] = weight·(lse − logit of the target) − bonus·entropy. A warp a row.
extern "C" __global__ void nll_fwd(const float* __restrict__ x, const unsigned* __restrict__ target,
                                   const float* __restrict__ weight, const float* __restrict__ bonus,
                                   float* __restrict__ lse, float* __restrict__ entropy, float* __restrict__ part, int N,
                                   int V) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= N) return;
  x += (size_t)row * V;
  float top = -3.4e38f, sum = 0.f, mean = 0.f;
  for (int i = lane; i < V; i += 32) top = fmaxf(top, x[i]);
  top = warp_max(top);
  for (int i = lane; i < V; i += 32) {
    float e = expf(x[i] - top);
    sum += e;
    mean += e * x[i];
  }
  sum = warp_sum(sum);
  mean = warp_sum(mean) / sum;
  float l = top + logf(sum);
  if (lane == 0) {
    lse[row] = l;
    float w = weight[row], p = w == 0.f ? 0.f : w * (l - x[target[row]]);
    if (bonus) {
      entropy[row] = l - mean;
      p -= bonus[row] * (l - mean);
    }
    part[row] = p;
  }
}

// Sum of n numbers by one block.
extern "C" __global__ void total(const float* __restrict__ x, float* __restrict__ out, int n) {
  __shared__ float s[32];
  float v = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? s[threadIdx.x] : 0.f;
    v = warp_sum(v);
    if (threadIdx.x == 0) out[0] = v;
  }
}

// Gradient of the logits: g·(weight·(softmax − one at the target) + bonus·softmax·(log softmax + entropy)).
extern "C" __global__ void nll_bwd(const float* __restrict__ x, const unsigned* __restrict__ target,
                                   const float* __restrict__ weight, const float* __restrict__ bonus,
                                   const float* __restrict__ lse, const float* __restrict__ entropy,
                                   const float* __restrict__ g, float* __restrict__ out, int N, int V) {
  size_t n = (size_t)N * V;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    int row = i / V;
    unsigned v = i - (size_t)row * V;
    float w = weight[row], b = bonus ? bonus[row] : 0.f, d = 0.f;
    if (w != 0.f || b != 0.f) {
      float log_p = x[i] - lse[row], p = expf(log_p);
      d = w * (p - (v == target[row] ? 1.f : 0.f));
      if (b != 0.f) d += b * p * (log_p + entropy[row]);
    }
    out[i] = g ? d * g[0] : d;
  }
}

// ---- Decoding -----------------------------------------------------------------------------------------------------

// State [2, rows / group, H] into the first H columns of x [rows, ldx] and into c [rows, H]; every row begins with `start`.
extern "C" __global__ void decode_init(const float* __restrict__ state, float* __restrict__ x, float* __restrict__ c,
                                       unsigned* __restrict__ prev, int rows, int group, int H, int ldx, unsigned start) {
  int n = rows * H, items = rows / group;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int row = i / H, j = i - row * H;
    size_t from = (size_t)(row / group) * H + j;
    x[(size_t)row * ldx + j] = state[from];
    c[i] = state[(size_t)items * H + from];
    if (j == 0) prev[row] = start;
  }
}

// out[n] = Σ_d k[n, d]·b[d]. A warp a row.
extern "C" __global__ void row_dots(const float* __restrict__ k, const float* __restrict__ b, float* __restrict__ out, int N, int D) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= N) return;
  float s = 0.f;
  for (int i = lane; i < D; i += 32) s += k[(size_t)row * D + i] * b[i];
  s = warp_sum(s);
  if (lane == 0) out[row] = s;
}

struct Mem {
  const float* keys;      // [S, B, H]: keys times the query's weight, so that h itself is the query
  const float* offsets;   // [S, B]: keys times the query's bias
  const float* values;    // [S, B, H]
  const unsigned* len;    // [B]
  int S, B;
};

// One decoding step of a row a block: the cell, then attention over one or two memories whose rows are shared by
// neighbouring rows. x [rows, ldx] gets h and the attention results, side by side.
extern "C" __global__ void decode_step(const float* __restrict__ table, const unsigned* __restrict__ prev,
                                       const float* __restrict__ gh, float* __restrict__ c, float* __restrict__ x, int ldx,
                                       int H, int rows, const float* keys1, const float* offsets1, const float* values1,
                                       const unsigned* len1, int S1, int B1, const float* keys2, const float* offsets2,
                                       const float* values2, const unsigned* len2, int S2, int B2) {
  extern __shared__ float sm[];
  float *h = sm, *score = sm + H;
  int row = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const float* t = table + (size_t)prev[row] * 4 * H;
  const float* g = gh + (size_t)row * 4 * H;
  for (int j = threadIdx.x; j < H; j += blockDim.x) {
    float ig = sigm(t[j] + g[j]), fg = sigm(t[j + H] + g[j + H]);
    float gg = tanh_(t[j + 2 * H] + g[j + 2 * H]), og = sigm(t[j + 3 * H] + g[j + 3 * H]);
    float cc = fg * c[(size_t)row * H + j] + ig * gg;
    c[(size_t)row * H + j] = cc;
    h[j] = og * tanh_(cc);
    x[(size_t)row * ldx + j] = h[j];
  }
  __syncthreads();
  for (int m = 0; m < 2; m++) {
    Mem mem = m ? Mem{keys2, offsets2, values2, len2, S2, B2} : Mem{keys1, offsets1, values1, len1, S1, B1};
    if (!mem.keys) break;
    int b = row / (rows / mem.B);
    int n = min((int)mem.len[b], mem.S);
    for (int s = warp; s < n; s += warps) {
      const float* k = mem.keys + ((size_t)s * mem.B + b) * H;
      float d = 0.f;
      for (int j = lane; j < H; j += 32) d += h[j] * k[j];
      d = warp_sum(d);
      if (lane == 0) score[s] = d + mem.offsets[s * mem.B + b];
    }
    __syncthreads();
    if (warp == 0) {
      float top = -3.4e38f, sum = 0.f;
      for (int s = lane; s < n; s += 32) top = fmaxf(top, score[s]);
      top = warp_max(top);
      for (int s = lane; s < n; s += 32) sum += expf(score[s] - top);
      float w = 1.f / warp_sum(sum);
      for (int s = lane; s < n; s += 32) score[s] = expf(score[s] - top) * w;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < H; j += blockDim.x) {
      float a = 0.f;
      const float* v = mem.values + (size_t)b * H + j;
      for (int s = 0; s < n; s++) a += score[s] * v[(size_t)s * mem.B * H];
      x[(size_t)row * ldx + (1 + m) * H + j] = a;
    }
    __syncthreads();
  }
}

// A warp a row of logits [N, V] (bias added where given): the first largest where u < 0, else the symbol at which the
// cumulative softmax passes u. Written to out and, where given, to again.
extern "C" __global__ void pick(const float* __restrict__ logits, const float* __restrict__ bias,
                                const float* __restrict__ u, unsigned* __restrict__ out, unsigned* __restrict__ again,
                                int N, int V) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= N) return;
  const float* x = logits + (size_t)row * V;
  float top = -3.4e38f;
  int best = V;
  for (int i = lane; i < V; i += 32) {
    float v = x[i] + (bias ? bias[i] : 0.f);
    if (v > top) { top = v; best = i; }
  }
  for (int s = 16; s; s /= 2) {
    float t = __shfl_xor_sync(~0u, top, s);
    int k = __shfl_xor_sync(~0u, best, s);
    if (t > top || (t == top && k < best)) { top = t; best = k; }
  }
  float r = u ? u[row] : -1.f;
  if (r >= 0.f) {
    float sum = 0.f;
    for (int i = lane; i < V; i += 32) sum += expf(x[i] + (bias ? bias[i] : 0.f) - top);
    sum = warp_sum(sum);
    float left = r * sum;
    for (int from = 0; from < V; from += 32) {
      int i = from + lane;
      float e = i < V ? expf(x[i] + (bias ? bias[i] : 0.f) - top) : 0.f;
      float scan = e;
      for (int s = 1; s < 32; s *= 2) {
        float t = __shfl_up_sync(~0u, scan, s);
        if (lane >= s) scan += t;
      }
      unsigned hit = __ballot_sync(~0u, scan > left && i < V);
      if (hit) { best = from + __ffs(hit) - 1; break; }
      left -= __shfl_sync(~0u, scan, 31);
    }
  }
  if (lane == 0) {
    unsigned symbol = best < V ? best : 0;
    out[row] = symbol;
    if (again) again[row] = symbol;
  }
}

// same[b] = 1 if picked[t, b] equals target[t, b] wherever that is no padding.
extern "C" __global__ void matches(const unsigned* __restrict__ picked, const unsigned* __restrict__ target,
                                   unsigned* __restrict__ same, int T, int B) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= B) return;
  unsigned ok = 1;
  for (int t = 0; t < T; t++) {
    unsigned want = target[(size_t)t * B + b];
    ok &= want == 0 || want == picked[(size_t)t * B + b];
  }
  same[b] = ok;
}

// ---- Adam ---------------------------------------------------------------------------------------------------------

// clock = [steps, 1/(1−β1^t), 1/(1−β2^t)]: the count lives on the device, so that a recorded step can be replayed.
extern "C" __global__ void adam_tick(float* clock, double b1, double b2) {
  double t = clock[0] + 1.;
  clock[0] = (float)t;
  clock[1] = (float)(1. / (1. - pow(b1, t)));
  clock[2] = (float)(1. / (1. - pow(b2, t)));
}

struct AdamTable {
  float *p[48], *m[48], *v[48];
  const float* g[48];
  int n[48];
};

// All parameters in one launch; blockIdx.y is the parameter.
extern "C" __global__ void adam_all(AdamTable t, const float* __restrict__ clock, float lr, float b1, float b2, float eps) {
  int k = blockIdx.y, n = t.n[k];
  float *p = t.p[k], *m = t.m[k], *v = t.v[k];
  const float* g = t.g[k];
  float c1 = clock[1], c2 = clock[2];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float gi = g[i];
    float mi = b1 * m[i] + (1.f - b1) * gi;
    float vi = b2 * v[i] + (1.f - b2) * gi * gi;
    m[i] = mi;
    v[i] = vi;
    p[i] -= lr * (mi * c1) / (sqrtf(vi * c2) + eps);
  }
}

// Averages p move towards values g: p = decay·p + (1 − decay)·g.
extern "C" __global__ void average_all(AdamTable t, float decay) {
  int k = blockIdx.y, n = t.n[k];
  float* p = t.p[k];
  const float* g = t.g[k];
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = decay * p[i] + (1.f - decay) * g[i];
}
