// ---- Walks among views ---------------------------------------------------------------------------------------------
// Kernels of NAV's models beyond `transformer.cu`: views of places, moves between them, and similarity memory over earlier outputs.

__device__ __forceinline__ float from_half(unsigned short x) {
  float r;
  asm("{.reg .f16 a; mov.b16 a, %1; cvt.f32.f16 %0, a;}" : "=f"(r) : "h"(x));
  return r;
}

// ---- Views. A pose is 12 · place + heading; from P on they are those of the mirrored world. A table has 36 rows of F numbers
// (float16) a place. A block a row.
__device__ __forceinline__ unsigned plain(unsigned pose, int P) { return pose < P ? pose : pose - P; }

// x times a factor, both ways through float.
__device__ __forceinline__ unsigned scaled_half(unsigned x, float factor) {
  unsigned short r;
  asm("{.reg .f16 a; cvt.rn.f16.f32 a, %1; mov.b16 %0, a;}" : "=h"(r) : "f"(from_half(x) * factor));
  return r;
}

// A table of n numbers, rows of F, with each column times its factor. Where rows are made of eights, a thread takes eight at once.
extern "C" __global__ void scale_features(const unsigned short* __restrict__ table, const float* __restrict__ factors,
                                          unsigned short* __restrict__ out, int F, int n) {
  unsigned first = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  if (F % 8) {
    for (unsigned i = first; i < n; i += all) out[i] = scaled_half(table[i], factors[i % F]);
    return;
  }
  for (unsigned i = first; i < n / 8; i += all) {
    uint4 x = reinterpret_cast<const uint4*>(table)[i];
    const float* by = factors + 8 * (i % (F / 8));
    unsigned pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int k = 0; k < 4; k++)
      pairs[k] = scaled_half(pairs[k] & 0xffff, by[2 * k]) | scaled_half(pairs[k] >> 16, by[2 * k + 1]) << 16;
    reinterpret_cast<uint4*>(out)[i] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

#define LOOK 40  // numbers of shared memory that a look needs; with 18·F more the views lie there

// The views of a place, in shared memory where there is room; all are asked for at once. By a block of 256.
__device__ __forceinline__ const unsigned short* bring(const unsigned short* views, int F, float* shared, int room) {
  if (F % 2 || LOOK + 18 * F > room) return views;
  uint4* to = reinterpret_cast<uint4*>(shared + LOOK);
  const uint4* from = reinterpret_cast<const uint4*>(views);
  int n = 36 * F / 8;
  for (int i = thread(); i < n; i += 6 * 256) {
    uint4 part[6];
#pragma unroll
    for (int k = 0; k < 6; k++)
      if (i + 256 * k < n) part[k] = from[i + 256 * k];
#pragma unroll
    for (int k = 0; k < 6; k++)
      if (i + 256 * k < n) to[i + 256 * k] = part[k];
  }
  return reinterpret_cast<const unsigned short*>(to);
}

#define PARTS 12  // numbers of a row that a lane asks for at once

// x · y over n numbers, those of y float16, by a warp.
__device__ __forceinline__ float dot_half(const float* x, const unsigned short* y, int n, int lane) {
  float dot = 0.f;
  for (int from = lane; from < n; from += 32 * PARTS) {
    float a[PARTS], b[PARTS];
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
      bool in = from + 32 * k < n;
      a[k] = in ? x[from + 32 * k] : 0.f;
      b[k] = in ? from_half(y[from + 32 * k]) : 0.f;
    }
#pragma unroll
    for (int k = 0; k < PARTS; k++) dot += a[k] * b[k];
  }
  return dot;
}

// A block's row may keep the views of its place from look to look: whose they are (null: it keeps none), and where.
struct Held {
  int* place;
  float* views;
};

// Where numbers lie in eights: x, what parts of the block make of it, and the views where they are not kept.
#define LOOK_SPACE(F) (20 * (F) + LOOK + 256 + 256 * 8)
__device__ __forceinline__ bool eights(int F, int room) { return F % 8 == 0 && LOOK_SPACE(F) <= room; }

// Asks for the views of a place. By a block of 256.
__device__ __forceinline__ void bring_views(const unsigned short* table, unsigned place, int F, float* views) {
  const unsigned short* from = table + (size_t)place * 36 * F + 8 * thread();
  unsigned to = (unsigned)__cvta_generic_to_shared(views) + 16 * thread();
#pragma unroll 2
  for (int i = thread(); i < 36 * F / 8; i += 256, from += 2048, to += 4096)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Eight numbers of float16.
struct Eight { float x[8]; };
__device__ __forceinline__ Eight eight(uint4 v) {
  Eight r;
  unsigned part[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int k = 0; k < 4; k++) {
    r.x[2 * k] = from_half(part[k] & 0xffff);
    r.x[2 * k + 1] = from_half(part[k] >> 16);
  }
  return r;
}

// A row's look at the views of its place. Forwards: out = the views weighted by softmax(x · view), which is kept in w [N, 36].
// Backwards (x is the gradient of what was seen): out += the views weighted by the gradient of those scores. By a block of 256.
template <bool BACK> __device__ __forceinline__ void look_row(const float* x, int ldx, const unsigned short* table, const unsigned* pose, float* out,
                                                              int ldo, float* w, int F, int P, int n, float* shared, Held held) {
  int tid = thread(), lane = tid % 32, eighths = F / 8;
  float *query = shared, *score = query + F, *part = score + LOOK, *sums = part + 256;
  x += (size_t)n * ldx;
  out += (size_t)n * ldo;
  w += (size_t)n * 36;
  unsigned place = plain(pose[n], P) / 12;
  float before[2], kept_a = 0.f, kept_b = 0.f;
  for (int f = tid; f < F; f += 256) query[f] = x[f];
  if (BACK) {
#pragma unroll
    for (int k = 0; k < 2; k++) before[k] = tid + 256 * k < F ? out[tid + 256 * k] : 0.f;
    if (tid < 32) kept_a = w[tid];
    if (tid < 4) kept_b = w[32 + tid];
  }
  float* lie = held.place ? held.views : sums + 256 * 8;
  bool kept = held.place && *held.place == (int)place;
  if (!kept) bring_views(table, place, F, lie);
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  if (!kept && held.place && tid == 0) *held.place = place;
  const uint4* views = reinterpret_cast<const uint4*>(lie);
  if (tid < 252) {
    int v = tid / 7, u = tid - 7 * v;
    const uint4* view = views + v * eighths + u;
    const float* q = query + 8 * u;
    float dot = 0.f, more = 0.f;
#pragma unroll 3
    for (; u < eighths; u += 7, view += 7, q += 56) {
      Eight e = eight(*view);
      float4 a = *(const float4*)q, b = *(const float4*)(q + 4);
      dot += a.x * e.x[0] + a.y * e.x[1] + a.z * e.x[2] + a.w * e.x[3];
      more += b.x * e.x[4] + b.y * e.x[5] + b.z * e.x[6] + b.w * e.x[7];
    }
    part[tid] = dot + more;
  }
  __syncthreads();
  if (tid < 32) {
    float a = 0.f, b = 0.f;
#pragma unroll
    for (int p = 0; p < 7; p++) {
      a += part[7 * lane + p];
      if (lane < 4) b += part[7 * (32 + lane) + p];
    }
    if (BACK) {
      float mean = warp_sum(kept_a * a + kept_b * b);
      a = kept_a * (a - mean);
      b = kept_b * (b - mean);
    } else {
      float top = warp_max(lane < 4 ? fmaxf(a, b) : a);
      a = expf(a - top);
      b = lane < 4 ? expf(b - top) : 0.f;
      float sum = 1.f / warp_sum(a + b);
      a *= sum;
      b *= sum;
      w[lane] = a;
      if (lane < 4) w[32 + lane] = b;
    }
    score[lane] = a;
    if (lane < 4) score[32 + lane] = b;
  }
  __syncthreads();
  // Some threads have eight columns in some of the views.
  int groups = min(256 / eighths, 6), group = tid / eighths, u = tid - group * eighths;
  if (group < groups) {
    float s[8] = {0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f, 0.f};
    const uint4* view = views + group * eighths + u;
#pragma unroll 6
    for (int v = group; v < 36; v += groups, view += groups * eighths) {
      Eight e = eight(*view);
      float weight = score[v];
#pragma unroll
      for (int k = 0; k < 8; k++) s[k] += weight * e.x[k];
    }
    float4* to = (float4*)(sums + group * F + 8 * u);
    to[0] = {s[0], s[1], s[2], s[3]};
    to[1] = {s[4], s[5], s[6], s[7]};
  }
  __syncthreads();
  for (int f = tid, k = 0; f < F; f += 256, k++) {
    float s = 0.f;
    for (int g = 0; g < groups; g++) s += sums[g * F + f];
    out[f] = BACK ? (k < 2 ? before[k] : out[f]) + s : s;
  }
}

// out = the views of the row's place, weighted by softmax(q · view) (kept in w [N, 36]).
__device__ void view_attention_fwd_row(const float* q, int ldq, const unsigned short* table, const unsigned* pose, float* out, int ldo, float* w, int F,
                             int P, int n, float* score, int room, Held held) {
  if (eights(F, room)) return look_row<false>(q, ldq, table, pose, out, ldo, w, F, P, n, score, held);
  int warp = thread() / 32, lane = thread() % 32;
  const unsigned short* views = bring(table + (size_t)(plain(pose[n], P) / 12) * 36 * F, F, score, room);
  q += (size_t)n * ldq;
  __syncthreads();
  for (int v = warp; v < 36; v += blockDim.x / 32) {
    float dot = warp_sum(dot_half(q, views + (size_t)v * F, F, lane));
    if (lane == 0) score[v] = dot;
  }
  __syncthreads();
  if (warp == 0) {
    float a = score[lane], b = lane < 4 ? score[32 + lane] : -3.4e38f;
    float top = warp_max(fmaxf(a, b));
    a = expf(a - top);
    b = lane < 4 ? expf(b - top) : 0.f;
    float sum = 1.f / warp_sum(a + b);
    score[lane] = a * sum;
    if (lane < 4) score[32 + lane] = b * sum;
  }
  __syncthreads();
  if (thread() < 36) w[(size_t)n * 36 + thread()] = score[thread()];
  for (int f = thread(); f < F; f += blockDim.x) {
    float s = 0.f;
    for (int v = 0; v < 36; v++) s += score[v] * from_half(views[(size_t)v * F + f]);
    out[(size_t)n * ldo + f] = s;
  }
}
// `room` numbers of shared memory: LOOK_SPACE, or LOOK.
extern "C" __global__ void view_attention_fwd(const float* q, int ldq, const unsigned short* table, const unsigned* pose, float* out, int ldo, float* w,
                                    int F, int P, int room) {
  extern __shared__ __align__(16) float scratch[];
  view_attention_fwd_row(q, ldq, table, pose, out, ldo, w, F, P, blockIdx.x, scratch, room, Held{nullptr, nullptr});
}

__device__ void view_attention_bwd_row(const unsigned short* table, const unsigned* pose, const float* w, const float* dout, float* dq, int F,
                             int P, int n, float* d, int room, Held held) {
  if (eights(F, room)) return look_row<true>(dout, F, table, pose, dq, F, const_cast<float*>(w), F, P, n, d, held);
  int warp = thread() / 32, lane = thread() % 32;
  const unsigned short* views = bring(table + (size_t)(plain(pose[n], P) / 12) * 36 * F, F, d, room);
  dout += (size_t)n * F;
  w += (size_t)n * 36;
  __syncthreads();
  for (int v = warp; v < 36; v += blockDim.x / 32) {
    float dot = warp_sum(dot_half(dout, views + (size_t)v * F, F, lane));
    if (lane == 0) d[v] = dot;
  }
  __syncthreads();
  if (warp == 0) {
    float a = d[lane], b = lane < 4 ? d[32 + lane] : 0.f, wa = w[lane], wb = lane < 4 ? w[32 + lane] : 0.f;
    float mean = warp_sum(wa * a + wb * b);
    d[lane] = wa * (a - mean);
    if (lane < 4) d[32 + lane] = wb * (b - mean);
  }
  __syncthreads();
  for (int f = thread(); f < F; f += blockDim.x) {
    float s = 0.f;
    for (int v = 0; v < 36; v++) s += d[v] * from_half(views[(size_t)v * F + f]);
    dq[(size_t)n * F + f] += s;
  }
}
extern "C" __global__ void view_attention_bwd(const unsigned short* table, const unsigned* pose, const float* w, const float* dout, float* dq,
                                    int F, int P, int room) {
  extern __shared__ __align__(16) float scratch[];
  view_attention_bwd_row(table, pose, w, dout, dq, F, P, blockIdx.x, scratch, room, Held{nullptr, nullptr});
}

// The transition table: for each pose and action the row of the view that faces it (NONE: there is no such action; action 0, to
// stop, is the row of zeros), sin and cos of heading and elevation, and the pose after it.
struct Transitions {
  const unsigned short* table;
  const unsigned *rows, *next;
  const float* directions;
  int A, F, P;
};
__device__ __forceinline__ size_t way_at(const Transitions& s, unsigned pose, int a) { return (size_t)plain(pose, s.P) * s.A + a; }
// Number k of the way's direction; the mirror changes the sign of the heading's sine.
__device__ __forceinline__ float direction(const Transitions& s, unsigned pose, size_t at, int k) {
  float d = s.directions[4 * at + k];
  return k == 0 && pose >= s.P ? -d : d;
}
#define NONE 0xffffffffu

// The embedding [F + 4] of the action made at each of N moments.
extern "C" __global__ void action_embeddings(Transitions s, const unsigned* __restrict__ pose, const unsigned* __restrict__ action,
                                  float* __restrict__ out, int N) {
  int F = s.F, width = F + 4;
  EACH(i, (size_t)N * width) {
    size_t n = i / width;
    int f = i - n * width;
    size_t at = way_at(s, pose[n], action[n]);
    out[i] = f < F ? from_half(s.table[(size_t)s.rows[at] * F + f]) : direction(s, pose[n], at, f - F);
  }
}

// The score of an action by a warp: z is [F views, 4 directions, constant].
__device__ __forceinline__ float score_of(const Transitions& s, const float* z, unsigned pose, int a, const float* bias, int lane) {
  size_t at = way_at(s, pose, a);
  unsigned row = s.rows[at];
  if (row == NONE) return -1e30f;
  float dot = dot_half(z, s.table + (size_t)row * s.F, s.F, lane);
  if (lane < 4) dot += z[s.F + lane] * direction(s, pose, at, lane);
  return warp_sum(dot) + z[s.F + 4] + bias[0];
}

// Logits [N, A]. A block a moment.
extern "C" __global__ void score_fwd(Transitions s, const float* __restrict__ z, const unsigned* __restrict__ pose,
                                     const float* __restrict__ bias, float* __restrict__ logits) {
  int n = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int a = warp; a < s.A; a += blockDim.x / 32) {
    float x = score_of(s, z + (size_t)n * (s.F + 5), pose[n], a, bias, lane);
    if (lane == 0) logits[(size_t)n * s.A + a] = x;
  }
}

extern "C" __global__ void score_bwd(Transitions s, const unsigned* __restrict__ pose, const float* __restrict__ d,
                                     float* __restrict__ dz) {
  int n = blockIdx.x, width = s.F + 5;
  d += (size_t)n * s.A;
  for (int f = thread(); f < width; f += blockDim.x) {
    float sum = 0.f;
    for (int a = 0; a < s.A; a++) {
      size_t at = way_at(s, pose[n], a);
      unsigned row = s.rows[at];
      if (row == NONE) continue;
      float x = f < s.F ? from_half(s.table[(size_t)row * s.F + f]) : f < s.F + 4 ? direction(s, pose[n], at, f - s.F) : 1.f;
      sum += d[a] * x;
    }
    dz[(size_t)n * width + f] += sum;
  }
}

// A step of walkers, a block each: scores, the choice (the likeliest where u < 0, else by inversion; to stop where that was
// done before, and at the last step), the pose after it, and the choice's embedding. The views of the next place are asked for
// where they are kept. A pose has WALKED actions at most, `shared` room for WALK_SPACE numbers.
#define WALKED 64
#define WALK_SPACE (3 * WALKED + 256)
__device__ void environment_step_row(const Transitions& s, const float* z, int ldz, const float* bias, const unsigned* pose, unsigned* after, const float* u,
                              unsigned* done, unsigned* action, float* embedding, int ldo, int last, int n, float* shared, Held held) {
  float *logit = shared, *part = logit + WALKED;
  unsigned *row = reinterpret_cast<unsigned*>(part + 256), *next = row + WALKED;
  __shared__ unsigned made;
  int tid = thread(), warp = tid / 32, lane = tid % 32, A = s.A;
  z += (size_t)n * ldz;
  unsigned from = pose[n];
  float draw = u[n], constant = z[s.F + 4] + bias[0];
  bool still = last || done[n];
  size_t at = way_at(s, from, 0);
  if (tid < A) {
    row[tid] = s.rows[at + tid];
    next[tid] = s.next[at + tid];
  }
  // An action is that of some neighbouring threads.
  int parts = 256 / A, a = tid / parts, p = tid - a * parts, eighths = s.F / 8;
  __syncthreads();
  if (s.F % 8 == 0) {
    float dot = 0.f;
    if (a < A && row[a] != NONE) {
      const uint4* x = reinterpret_cast<const uint4*>(s.table + (size_t)row[a] * s.F);
#pragma unroll 3
      for (int k = p; k < eighths; k += parts) {
        Eight e = eight(x[k]);
#pragma unroll
        for (int c = 0; c < 8; c++) dot += z[8 * k + c] * e.x[c];
      }
      for (int k = p; k < 4; k += parts) dot += z[s.F + k] * direction(s, from, at + a, k);
    }
    part[tid] = dot;
  } else {
    if (tid < A * parts) part[tid] = 0.f;
    __syncthreads();
    for (int a = warp; a < A; a += 8) {
      float x = score_of(s, z, from, a, bias, lane) - constant;
      if (lane == 0) part[a * parts] = x;
    }
  }
  __syncthreads();
  if (tid < A) {
    float x = constant;
    for (int p = 0; p < parts; p++) x += part[tid * parts + p];
    logit[tid] = row[tid] == NONE ? -1e30f : x;
  }
  __syncthreads();
  if (warp == 0) {
    float top = logit[0];
    int best = 0;
    for (int a = lane; a < A; a += 32)
      if (logit[a] > top) { top = logit[a]; best = a; }
    for (int k = 16; k; k /= 2) {
      float v = __shfl_xor_sync(~0u, top, k);
      int b = __shfl_xor_sync(~0u, best, k);
      if (v > top || (v == top && b < best)) { top = v; best = b; }
    }
    for (int a = lane; a < A; a += 32) part[a] = expf(logit[a] - top);
    __syncwarp();
    if (lane == 0) {
      if (draw >= 0.f) {
        float sum = 0.f;
        for (int a = 0; a < A; a++) sum += part[a];
        float left = draw * sum;
        for (int a = 0; a < A; a++) {
          left -= part[a];
          if (left < 0.f) { best = a; break; }
        }
      }
      if (still) best = 0;
      if (best == 0) done[n] = 1;
      action[n] = best;
      after[n] = next[best];
      made = best;
    }
  }
  __syncthreads();
  if (held.place && s.F % 8 == 0) {
    int place = plain(next[made], s.P) / 12;
    if (*held.place != place) bring_views(s.table, place, s.F, held.views);
    __syncthreads();
    if (tid == 0) *held.place = place;
  }
  const unsigned short* x = s.table + (size_t)row[made] * s.F;
  bool some = row[made] != NONE;  // scores that are no numbers choose anything
  for (int f = tid; f < s.F + 4; f += 256)
    embedding[(size_t)n * ldo + f] = !some ? 0.f : f < s.F ? from_half(x[f]) : direction(s, from, at + made, f - s.F);
}
extern "C" __global__ void environment_step(Transitions s, const float* z, int ldz, const float* bias, const unsigned* pose, unsigned* after, const float* u,
                                     unsigned* done, unsigned* action, float* embedding, int ldo, int last) {
  __shared__ float shared[WALK_SPACE];
  environment_step_row(s, z, ldz, bias, pose, after, u, done, action, embedding, ldo, last, blockIdx.x, shared, Held{nullptr, nullptr});
}

// ---- What is recalled of earlier outputs (entries 0 to t of R rows of H). A block a row.
__device__ void similarity_fwd_row(const float* x, int ldx, const float* outputs, int t, float* out, int ldo, int R, int H, int r,
                               float* cosine) {
  int warp = thread() / 32, lane = thread() % 32;
  x += (size_t)r * ldx;
  outputs += (size_t)r * H;
  for (int j = warp; j <= t; j += blockDim.x / 32) {
    const float* o = outputs + (size_t)j * R * H;
    float product = 0.f, own = 0.f, squared = 0.f;
    for (int i = lane; i < H; i += 32) {
      float a = x[i], b = o[i];
      product += a * b;
      own += b * b;
      squared += a * a;
    }
    product = warp_sum(product);
    float c = product / fmaxf(sqrtf(warp_sum(squared)) * sqrtf(warp_sum(own)), 1e-8f);
    if (lane == 0) cosine[j] = c < .9f ? 0.f : c;
  }
  __syncthreads();
  float total = 1e-8f;
  for (int j = 0; j <= t; j++) total += cosine[j];
  for (int i = thread(); i < H; i += blockDim.x) {
    float s = 0.f;
    for (int j = 0; j <= t; j++)
      if (cosine[j] != 0.f) s += cosine[j] / total * outputs[(size_t)j * R * H + i];
    out[(size_t)r * ldo + i] = s;
  }
}
extern "C" __global__ void similarity_fwd(const float* x, int ldx, const float* outputs, int t, float* out, int ldo, int R, int H) {
  extern __shared__ float scratch[];
  similarity_fwd_row(x, ldx, outputs, t, out, ldo, R, H, blockIdx.x, scratch);
}

// Of each entry there are its cosine, gain, product of norms and squared norm.
__device__ void similarity_bwd_row(const float* x, int ldx, const float* outputs, int t, const float* grad, int ldg, float* dx,
                               float* d_outputs, int R, int H, int r, float* cosine) {
  float *gain = cosine + t + 1, *norms = gain + t + 1, *squares = norms + t + 1;
  __shared__ float squared;
  int warp = thread() / 32, lane = thread() % 32;
  x += (size_t)r * ldx;
  dx += (size_t)r * ldx;
  grad += (size_t)r * ldg;
  outputs += (size_t)r * H;
  d_outputs += (size_t)r * H;
  for (int j = warp; j <= t; j += blockDim.x / 32) {
    const float* o = outputs + (size_t)j * R * H;
    float product = 0.f, own = 0.f, mine = 0.f, g = 0.f;
    for (int i = lane; i < H; i += 32) {
      float a = x[i], b = o[i];
      product += a * b;
      own += b * b;
      mine += a * a;
      g += grad[i] * b;
    }
    product = warp_sum(product);
    own = warp_sum(own);
    mine = warp_sum(mine);
    g = warp_sum(g);
    float both = fmaxf(sqrtf(mine) * sqrtf(own), 1e-8f), c = product / both;
    if (lane == 0) {
      cosine[j] = c < .9f ? 0.f : c;
      gain[j] = g;
      norms[j] = both;
      squares[j] = own;
      if (j == 0) squared = mine;
    }
  }
  __syncthreads();
  float total = 1e-8f, mean = 0.f;
  for (int j = 0; j <= t; j++) {
    total += cosine[j];
    mean += cosine[j] * gain[j];
  }
  mean /= total;
  for (int i = thread(); i < H; i += blockDim.x) {
    float sum = 0.f;
    for (int j = 0; j <= t; j++) {
      float c = cosine[j];
      if (c == 0.f) continue;
      size_t at = (size_t)j * R * H + i;
      float slope = (gain[j] - mean) / total, fixed = norms[j] > 1e-8f ? slope * c : 0.f;
      sum += slope / norms[j] * outputs[at] - fixed / squared * x[i];
      d_outputs[at] += c / total * grad[i] + slope / norms[j] * x[i] - fixed / squares[j] * outputs[at];
    }
    dx[i] += sum;
  }
}
extern "C" __global__ void similarity_bwd(const float* x, int ldx, const float* outputs, int t, const float* grad, int ldg, float* dx,
                                      float* d_outputs, int R, int H) {
  extern __shared__ float scratch[];
  similarity_bwd_row(x, ldx, outputs, t, grad, ldg, dx, d_outputs, R, H, blockIdx.x, scratch);
}

// out = u − σ(g)·r for ug = [u, r] of N rows.
__device__ __forceinline__ void gate_fwd_at(const float* ug, const float* g, float* out, int H, unsigned i) {
  unsigned n = i / (unsigned)H, h = i - n * H;
  out[i] = ug[n * 2 * H + h] - sigm(g[i]) * ug[n * 2 * H + H + h];
}
extern "C" __global__ void gate_fwd(const float* ug, const float* g, float* out, int N, int H) {
  EACH(i, (size_t)N * H) gate_fwd_at(ug, g, out, H, i);
}
__device__ __forceinline__ void gate_bwd_at(const float* ug, const float* g, const float* d, float* d_ug, float* dg, int H, unsigned i) {
  unsigned n = i / (unsigned)H, h = i - n * H;
  float s = sigm(g[i]);
  d_ug[n * 2 * H + h] += d[i];
  d_ug[n * 2 * H + H + h] -= d[i] * s;
  dg[i] -= d[i] * ug[n * 2 * H + H + h] * s * (1.f - s);
}
extern "C" __global__ void gate_bwd(const float* ug, const float* g, const float* d, float* d_ug, float* dg, int N, int H) {
  EACH(i, (size_t)N * H) gate_bwd_at(ug, g, d, d_ug, dg, H, i);
}

// ---- Weights that meet an action's embedding: directions of D numbers are four blocks of equal ones.

// out [N, F + 4 (+ 1)] from w [N, F + D]: the blocks' columns summed; one more column where there is a bias. Times scale [N] (0:
// none).
extern "C" __global__ void fold_directions(const float* __restrict__ w, int ldw, const float* __restrict__ bias, const float* __restrict__ scale,
                                float* __restrict__ out, int ldo, int N, int F, int D) {
  EACH(i, (size_t)N * ldo) {
    size_t n = i / ldo;
    int f = i - n * ldo;
    float s = 0.f;
    if (f < F) s = w[n * ldw + f];
    else if (f == F + 4) s = bias[n];
    else
      for (int k = 0; k < D / 4; k++) s += w[n * ldw + F + (f - F) * (D / 4) + k];
    out[i] = scale ? scale[n] * s : s;
  }
}

// The gradient of w (and of the bias) from that of what fold_directions gives: not added to.
extern "C" __global__ void unfold_directions(const float* __restrict__ d, int ldd, float* __restrict__ dw, int ldw, float* __restrict__ db,
                                  int N, int F, int D) {
  EACH(i, (size_t)N * (F + D)) {
    size_t n = i / (F + D);
    int f = i - n * (F + D);
    dw[n * ldw + f] = d[n * ldd + (f < F ? f : F + (f - F) / (D / 4))];
    if (db && f == 0) db[n] = d[n * ldd + F + 4];
  }
}
