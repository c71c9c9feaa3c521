// Kernels of the fused operations, compiled when the program first uses a GPU.
__device__ __forceinline__ float sigm(float x) { return 1.f / (1.f + expf(-x)); }

// One cell step of B rows. Rows that have ended carry their state. c_last, where given, gets the cells as well.
extern "C" __global__ void lstm_cell_fwd(const float* __restrict__ gx, const float* __restrict__ gh,
                                         const float* h_prev, const float* c_prev, float* h, float* c, float* c_last,
                                         float* __restrict__ act, const unsigned* __restrict__ len, int step, int B,
                                         int H) {
  int n = B * H;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int b = i / H, j = i - b * H;
    float hh = h_prev[i], cc = c_prev[i];
    size_t o = (size_t)b * 4 * H + j;
    if (step < (int)len[b]) {
      float ig = sigm(gx[o] + gh[o]);
      float fg = sigm(gx[o + H] + gh[o + H]);
      float gg = tanhf(gx[o + 2 * H] + gh[o + 2 * H]);
      float og = sigm(gx[o + 3 * H] + gh[o + 3 * H]);
      cc = fg * cc + ig * gg;
      hh = og * tanhf(cc);
      act[o] = ig; act[o + H] = fg; act[o + 2 * H] = gg; act[o + 3 * H] = og;
    }
    c[i] = cc;
    h[i] = hh;
    if (c_last) c_last[i] = cc;
  }
}

// dh holds the gradient from the later step (dh_in is 0 at the last); on return what the product with W adds to:
// zero for a live row, the gradient itself for a carried one.
extern "C" __global__ void lstm_cell_bwd(const float* __restrict__ act, const float* __restrict__ c_prev,
                                         const float* __restrict__ c, const float* __restrict__ grad_h,
                                         const float* dh_in, const float* dc_in, float* __restrict__ dgates, float* dh,
                                         float* dc, const unsigned* __restrict__ len, int step, int B, int H) {
  int n = B * H;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int b = i / H, j = i - b * H;
    size_t o = (size_t)b * 4 * H + j;
    float g = grad_h[i] + (dh_in ? dh_in[i] : 0.f);
    float d = dc_in[i];
    if (step < (int)len[b]) {
      float ig = act[o], fg = act[o + H], gg = act[o + 2 * H], og = act[o + 3 * H];
      float tc = tanhf(c[i]);
      d += g * og * (1.f - tc * tc);
      dgates[o] = d * gg * ig * (1.f - ig);
      dgates[o + H] = d * c_prev[i] * fg * (1.f - fg);
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

// A warp a row: first largest logit where u < 0, else the symbol at which the cumulative softmax passes u.
extern "C" __global__ void pick(const float* __restrict__ logits, const float* __restrict__ u, unsigned* __restrict__ out,
                                int N, int V) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= N) return;
  const float* x = logits + (size_t)row * V;
  float top = -3.4e38f;
  int best = V;
  for (int i = lane; i < V; i += 32)
    if (x[i] > top) { top = x[i]; best = i; }
  for (int s = 16; s; s /= 2) {
    float t = __shfl_xor_sync(~0u, top, s);
    int k = __shfl_xor_sync(~0u, best, s);
    if (t > top || (t == top && k < best)) { top = t; best = k; }
  }
  float r = u[row];
  if (r >= 0.f) {
    float sum = 0.f;
    for (int i = lane; i < V; i += 32) sum += expf(x[i] - top);
    for (int s = 16; s; s /= 2) sum += __shfl_xor_sync(~0u, sum, s);
    float left = r * sum;
    for (int from = 0; from < V; from += 32) {
      float e = from + lane < V ? expf(x[from + lane] - top) : 0.f;
      float scan = e;
      for (int s = 1; s < 32; s *= 2) {
        float t = __shfl_up_sync(~0u, scan, s);
        if (lane >= s) scan += t;
      }
      unsigned hit = __ballot_sync(~0u, scan > left && from + lane < V);
      if (hit) { best = from + __ffs(hit) - 1; break; }
      left -= __shfl_sync(~0u, scan, 31);
    }
  }
  if (lane == 0) out[row] = best < V ? best : 0;
}

extern "C" __global__ void adam(float* __restrict__ p, float* __restrict__ m, float* __restrict__ v,
                                const float* __restrict__ g, int n, float lr, float b1, float b2, float eps, float c1,
                                float c2) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float gi = g[i];
    float mi = b1 * m[i] + (1.f - b1) * gi;
    float vi = b2 * v[i] + (1.f - b2) * gi * gi;
    m[i] = mi;
    v[i] = vi;
    p[i] -= lr * (mi * c1) / (sqrtf(vi * c2) + eps);
  }
}
