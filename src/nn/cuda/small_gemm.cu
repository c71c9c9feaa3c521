// ---- Products of few rows -----------------------------------------------------------------------------------------
// C [M, N] = A [M, K] · W (+ C or a bias, through ReLU) in TF32, for matrices so small that a product is over before a larger one's
// machinery has begun. A block has 32 rows and 8·J columns of C; its 8 warps share K among them, 16 at a time, and take their
// factors straight from memory, all at once. W is stored [N, K], or [K, N] where it is transposed. A number of C is the same
// whatever J is.
#if __CUDA_ARCH__ >= 800

__device__ __forceinline__ unsigned tf32(float x) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ void mma8(float (&d)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The first `left` of four numbers `step` apart, zeros for the others.
__device__ __forceinline__ float4 some(const float* x, size_t step, int left) {
  float4 r = {0.f, 0.f, 0.f, 0.f};
  if (left > 0) r.x = x[0];
  if (left > 1) r.y = x[step];
  if (left > 2) r.z = x[2 * step];
  if (left > 3) r.w = x[3 * step];
  return r;
}

// d += 32 x 16 · 16 x 8J.
template <int J> __device__ __forceinline__ void multiply16(float (&d)[2][J][4], const float4 (&a)[4], const float4 (&b)[J]) {
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < J; j++) {
      const float4 &x = a[2 * i], &y = a[2 * i + 1];
      mma8(d[i][j], tf32(x.x), tf32(y.x), tf32(x.y), tf32(y.y), tf32(b[j].x), tf32(b[j].y));
      mma8(d[i][j], tf32(x.z), tf32(y.z), tf32(x.w), tf32(y.w), tf32(b[j].z), tf32(b[j].w));
    }
}

#define PART (8 * 32 * 33)  // numbers of shared memory for it, with J = 4

template <int J> __device__ void small_tile(const float* A, int lda, const float* __restrict__ W, int ldw, int transposed, float* C, int ldc,
                                            int M, int N, int K, int add, int relu, const float* bias, int m0, int n0, float* shared) {
  float(*part)[32][8 * J + 1] = reinterpret_cast<float(*)[32][8 * J + 1]>(shared);
  int warp = thread() / 32, lane = thread() % 32, g = lane / 4, t = lane % 4;
  bool fours_a = (size_t)A % 16 == 0 && lda % 4 == 0, fours_w = (size_t)W % 16 == 0 && ldw % 4 == 0;
  float d[2][J][4];
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) d[i][j][k] = 0.f;
  // Rows and columns beyond the matrix are read as its last; nobody looks at what they give. The order of k within the 16 is
  // the same for both factors, and any: a lane has four neighbours.
  const float *a_row[4], *w_row[J];
#pragma unroll
  for (int i = 0; i < 4; i++) a_row[i] = A + (size_t)min(m0 + g + 8 * i, M - 1) * lda + 4 * t;
#pragma unroll
  for (int i = 0; i < J; i++) {
    int n = min(n0 + g + 8 * i, N - 1);
    w_row[i] = transposed ? W + (size_t)4 * t * ldw + n : W + (size_t)n * ldw + 4 * t;
  }
  const float4 none = {0.f, 0.f, 0.f, 0.f};
  float before[J];
#pragma unroll
  for (int i = 0; i < J; i++) {
    int at = thread() + 256 * i, m = m0 + at / (8 * J), n = n0 + at % (8 * J);
    before[i] = n >= N ? 0.f : bias ? bias[n] : add && m < M ? C[(size_t)m * ldc + n] : 0.f;
  }
  constexpr int AHEAD = 2;  // sixteens that a warp asks for at once
  // Sixteens that are read in fours; where K is in fours the last of them may be short.
  int whole = fours_a && (fours_w || transposed) ? (K % 4 ? K : K + 15) / 16 * 16 : 0;
  for (int k0 = warp * 16; k0 < whole; k0 += 128 * AHEAD) {
    float4 a[AHEAD][4], b[AHEAD][J];
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
      int k = k0 + 128 * s;
      bool in = k + 4 * t < K;
      if (k >= whole) continue;
#pragma unroll
      for (int i = 0; i < 4; i++) a[s][i] = in ? *(const float4*)(a_row[i] + k) : none;
      if (!transposed) {
#pragma unroll
        for (int j = 0; j < J; j++) b[s][j] = in ? *(const float4*)(w_row[j] + k) : none;
      } else {
#pragma unroll
        for (int j = 0; j < J; j++) {
          const float* w = w_row[j] + (size_t)k * ldw;
          b[s][j] = none;
          if (in) b[s][j] = {w[0], w[ldw], w[2 * (size_t)ldw], w[3 * (size_t)ldw]};
        }
      }
    }
#pragma unroll
    for (int s = 0; s < AHEAD; s++)
      if (k0 + 128 * s < whole) multiply16(d, a[s], b[s]);
  }
  // The end of K that is no whole block, or is not aligned to four elements.
  for (int k0 = whole + warp * 16; k0 < K; k0 += 128) {
    float4 a[4], b[J];
    int left = K - k0 - 4 * t;
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = some(a_row[i] + k0, 1, left);
#pragma unroll
    for (int j = 0; j < J; j++)
      b[j] = transposed ? some(w_row[j] + (size_t)k0 * ldw, ldw, left) : some(w_row[j] + k0, 1, left);
    multiply16(d, a, b);
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < J; j++) {
      part[warp][16 * i + g][8 * j + 2 * t] = d[i][j][0];
      part[warp][16 * i + g][8 * j + 2 * t + 1] = d[i][j][1];
      part[warp][16 * i + g + 8][8 * j + 2 * t] = d[i][j][2];
      part[warp][16 * i + g + 8][8 * j + 2 * t + 1] = d[i][j][3];
    }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < J; i++) {
    int at = thread() + 256 * i, r = at / (8 * J), c = at % (8 * J), m = m0 + r, n = n0 + c;
    if (m >= M || n >= N) continue;
    float s = before[i];
#pragma unroll
    for (int w = 0; w < 8; w++) s += part[w][r][c];
    C[(size_t)m * ldc + n] = relu ? fmaxf(s, 0.f) : s;
  }
}

// ---- The same where a block has its columns of W in shared memory already, for programs (`persistent_kernel.cu`). What is done for a
// number of C is the same, in the same order.

// Numbers from a column of such weights to the next (transposed: from a k to the next): lanes then read them at once.
__device__ __forceinline__ int pitch_of(int K, int transposed, int cols) { return transposed ? cols + 2 : (K + 15) / 32 * 32 + 16; }

__device__ __forceinline__ void zero_at(unsigned at) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(0.f) : "memory"); }

// Asks for columns n0 to n0 + cols of W; the last stands for those beyond. Up to the next sixteen of K there are zeros.
__device__ __forceinline__ void fetch(const float* __restrict__ W, int ldw, int transposed, int N, int K, int n0, int cols, unsigned weights) {
  int pitch = pitch_of(K, transposed, cols), warp = thread() / 32, lane = thread() % 32, more = (K + 15) / 16 * 16 - K;
  for (int at = thread(); at < more * cols; at += 256)
    zero_at(weights + 4 * (transposed ? (K + at / cols) * pitch + at % cols : at / more * pitch + K + at % more));
  if (transposed) {
    // Some threads have a row, two columns each.
    int pairs = cols / 2, k = thread() / pairs, n = 2 * (thread() - k * pairs), every = 256 / pairs;
    const float* from = W + (size_t)k * ldw + n0 + n;
    unsigned to = weights + 4 * (k * pitch + n);
    if (k < every && n0 + n + 1 < N)
#pragma unroll 4
      for (; k < K; k += every, from += (size_t)every * ldw, to += 4 * every * pitch)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
  } else {
#pragma unroll 2
    for (int n = warp; n < cols; n += 8) {
      const float* from = W + (size_t)min(n0 + n, N - 1) * ldw + 4 * lane;
      unsigned to = weights + 4 * (n * pitch + 4 * lane);
#pragma unroll 2
      for (int k = 4 * lane; k < K; k += 128, from += 128, to += 512)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// The output of a product: columns from `split` on go to another matrix.
struct Onto {
  float *C, *other;
  const float* bias;  // 0: none
  int ldc, ldo, split, add, after;  // after: 1 through ReLU, 2 as the gate of A = [u, r]: u - sigmoid(.) * r
  __device__ float* at(int m, int n) const { return n < split ? C + m * ldc + n : other + m * ldo + n - split; }
};

// C's rows m0 to m0 + 16·I, all of which there are, columns n0 to n0 + 8·J of N, a multiple of four, as K is.
template <int I, int J, bool TURNED> __device__ __forceinline__ void ready_tile(const float* A, int lda, const float* weights, const Onto& onto, int N,
                                                                               int K, int m0, int n0, float* part) {
  constexpr int PITCH = 8 * J + 8, FOURS = 2 * J, ALL = 16 * FOURS, TURNS = (ALL + 255) / 256;
  int warp = thread() / 32, lane = thread() % 32, g = lane / 4, t = lane % 4;
  int pitch = pitch_of(K, TURNED, 8 * J);
  const float* a_at = A + (m0 + g) * lda + 16 * warp + 4 * t;
  const float* w = weights + (TURNED ? (16 * warp + 4 * t) * pitch + g : g * pitch + 16 * warp + 4 * t);
  const float4 none = {0.f, 0.f, 0.f, 0.f};
  float4 before[I][TURNS];
#pragma unroll
  for (int k = 0; k < TURNS; k++) {
    int at = thread() + 256 * k, r = at / FOURS, n = n0 + 4 * (at % FOURS);
    bool there = at < ALL && n < N;
#pragma unroll
    for (int i = 0; i < I; i++) {
      before[i][k] = none;
      if (there && onto.bias) before[i][k] = *(const float4*)(onto.bias + n);
      else if (there && onto.add) before[i][k] = *(const float4*)onto.at(m0 + 16 * i + r, n);
    }
  }
  float d[I][J][4];
#pragma unroll
  for (int i = 0; i < I; i++)
#pragma unroll
    for (int j = 0; j < J; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) d[i][j][k] = 0.f;
  constexpr int AHEAD = 2;  // sixteens that a warp asks for at once
  int left = K - 16 * warp - 4 * t, whole = K - 16 * warp;  // of this lane, of this warp
#pragma unroll 1
  for (bool first = true; first || whole > 0; first = false) {
    float4 a[AHEAD][2 * I];
#pragma unroll
    for (int s = 0; s < AHEAD; s++)
#pragma unroll
      for (int i = 0; i < 2 * I; i++) {
        a[s][i] = none;
        if (128 * s < left) a[s][i] = *(const float4*)(a_at + 8 * i * lda + 128 * s);
      }
    if (first) {
      asm volatile("cp.async.wait_all;" ::: "memory");
      __syncthreads();
    }
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
      if (128 * s >= whole) break;
      unsigned x[2 * I][4];
#pragma unroll
      for (int i = 0; i < 2 * I; i++) {
        x[i][0] = tf32(a[s][i].x);
        x[i][1] = tf32(a[s][i].y);
        x[i][2] = tf32(a[s][i].z);
        x[i][3] = tf32(a[s][i].w);
      }
#pragma unroll
      for (int j = 0; j < J; j++) {
        float4 b;
        if constexpr (TURNED) {
          const float* y = w + 128 * s * pitch + 8 * j;
          b = {y[0], y[pitch], y[2 * pitch], y[3 * pitch]};
        } else
          b = *(const float4*)(w + 8 * j * pitch + 128 * s);
        unsigned b0 = tf32(b.x), b1 = tf32(b.y), b2 = tf32(b.z), b3 = tf32(b.w);
#pragma unroll
        for (int i = 0; i < I; i++) {
          mma8(d[i][j], x[2 * i][0], x[2 * i + 1][0], x[2 * i][1], x[2 * i + 1][1], b0, b1);
          mma8(d[i][j], x[2 * i][2], x[2 * i + 1][2], x[2 * i][3], x[2 * i + 1][3], b2, b3);
        }
      }
    }
    left -= 128 * AHEAD;
    whole -= 128 * AHEAD;
    a_at += 128 * AHEAD;
    w += TURNED ? 128 * AHEAD * pitch : 128 * AHEAD;
  }
  // The warps' parts are summed, sixteen rows at a time.
#pragma unroll
  for (int i = 0; i < I; i++) {
    if (i) __syncthreads();
    float* to = part + (warp * 16 + g) * PITCH + 2 * t;
#pragma unroll
    for (int j = 0; j < J; j++) {
      *(float2*)(to + 8 * j) = {d[i][j][0], d[i][j][1]};
      *(float2*)(to + 8 * PITCH + 8 * j) = {d[i][j][2], d[i][j][3]};
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
      int at = thread() + 256 * k, r = at / FOURS, c = 4 * (at % FOURS), n = n0 + c;
      if (at >= ALL || n >= N) continue;
      float4 s = before[i][k];
#pragma unroll
      for (int v = 0; v < 8; v++) {
        float4 x = *(const float4*)(part + (v * 16 + r) * PITCH + c);
        s.x += x.x;
        s.y += x.y;
        s.z += x.z;
        s.w += x.w;
      }
      int m = m0 + 16 * i + r;
      if (onto.after == 1) s = {fmaxf(s.x, 0.f), fmaxf(s.y, 0.f), fmaxf(s.z, 0.f), fmaxf(s.w, 0.f)};
      if (onto.after == 2) {
        float4 u = *(const float4*)(A + m * lda + n), v = *(const float4*)(A + m * lda + N + n);
        s = {u.x - sigm(s.x) * v.x, u.y - sigm(s.y) * v.y, u.z - sigm(s.z) * v.z, u.w - sigm(s.w) * v.w};
      }
      *(float4*)onto.at(m, n) = s;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) small_gemm(const float* A, int lda, const float* __restrict__ W, int ldw, int transposed,
                                                                float* C, int ldc, int M, int N, int K, int add, int relu, const float* bias) {
  __shared__ float part[PART];
  small_tile<4>(A, lda, W, ldw, transposed, C, ldc, M, N, K, add, relu, bias, blockIdx.y * 32, blockIdx.x * 32, part);
}

#endif
