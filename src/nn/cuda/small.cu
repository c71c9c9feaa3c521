// ---- Products of few rows -----------------------------------------------------------------------------------------
// C [M, N] = A [M, K] · W (+ C, through ReLU) in TF32, for matrices so small that a product is over before a larger one's
// machinery has begun. A block has 32 rows and 8·J columns of C; its 8 warps share K among them, 16 at a time, and take their
// factors straight from memory, all at once. W is stored [N, K], or [K, N] where it is turned. A number of C is the same
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

template <int J> __device__ void small_tile(const float* A, int lda, const float* __restrict__ W, int ldw, int turned, float* C, int ldc,
                                            int M, int N, int K, int add, int relu, int m0, int n0, float* shared) {
  float(*part)[32][8 * J + 1] = reinterpret_cast<float(*)[32][8 * J + 1]>(shared);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
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
    w_row[i] = turned ? W + (size_t)4 * t * ldw + n : W + (size_t)n * ldw + 4 * t;
  }
  const float4 none = {0.f, 0.f, 0.f, 0.f};
  float before[J];
#pragma unroll
  for (int i = 0; i < J; i++) {
    int at = threadIdx.x + 256 * i, m = m0 + at / (8 * J), n = n0 + at % (8 * J);
    before[i] = add && m < M && n < N ? C[(size_t)m * ldc + n] : 0.f;
  }
  constexpr int AHEAD = 2;  // sixteens that a warp asks for at once
  // Sixteens that are read in fours; where K is in fours the last of them may be short.
  int whole = fours_a && (fours_w || turned) ? (K % 4 ? K : K + 15) / 16 * 16 : 0;
  for (int k0 = warp * 16; k0 < whole; k0 += 128 * AHEAD) {
    float4 a[AHEAD][4], b[AHEAD][J];
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
      int k = k0 + 128 * s;
      bool in = k + 4 * t < K;
      if (k >= whole) continue;
#pragma unroll
      for (int i = 0; i < 4; i++) a[s][i] = in ? *(const float4*)(a_row[i] + k) : none;
      if (!turned) {
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
  // What is left at the end of K, or does not lie in fours.
  for (int k0 = whole + warp * 16; k0 < K; k0 += 128) {
    float4 a[4], b[J];
    int left = K - k0 - 4 * t;
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = some(a_row[i] + k0, 1, left);
#pragma unroll
    for (int j = 0; j < J; j++)
      b[j] = turned ? some(w_row[j] + (size_t)k0 * ldw, ldw, left) : some(w_row[j] + k0, 1, left);
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
    int at = threadIdx.x + 256 * i, r = at / (8 * J), c = at % (8 * J), m = m0 + r, n = n0 + c;
    if (m >= M || n >= N) continue;
    float s = before[i];
#pragma unroll
    for (int w = 0; w < 8; w++) s += part[w][r][c];
    C[(size_t)m * ldc + n] = relu ? fmaxf(s, 0.f) : s;
  }
}

extern "C" __global__ void __launch_bounds__(256) small_product(const float* A, int lda, const float* __restrict__ W, int ldw, int turned,
                                                                float* C, int ldc, int M, int N, int K, int add, int relu) {
  __shared__ float part[PART];
  small_tile<4>(A, lda, W, ldw, turned, C, ldc, M, N, K, add, relu, blockIdx.y * 32, blockIdx.x * 32, part);
}

#endif
