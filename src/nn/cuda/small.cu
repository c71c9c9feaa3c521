// ---- Products of few rows -----------------------------------------------------------------------------------------
// C [M, N] = A [M, K] · W (+ C, through ReLU) in TF32, for matrices so small that a product is over before a larger one's
// machinery has begun. A block has 32 x 32 numbers of C; its 8 warps share K among them, 16 at a time, and take their factors
// straight from memory, all at once. W is stored [N, K], or [K, N] where it is turned.
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

// Numbers k to k + 3 of a row of K numbers; zeros beyond its end, and where there is no such row.
__device__ __forceinline__ float4 four(const float* __restrict__ row, bool there, int k, int K, bool fours) {
  float4 r = {0.f, 0.f, 0.f, 0.f};
  if (!there || k >= K) return r;
  if (fours && k + 3 < K) return *(const float4*)(row + k);
  r.x = row[k];
  if (k + 1 < K) r.y = row[k + 1];
  if (k + 2 < K) r.z = row[k + 2];
  if (k + 3 < K) r.w = row[k + 3];
  return r;
}

extern "C" __global__ void __launch_bounds__(256) small_product(const float* __restrict__ A, int lda, const float* __restrict__ W,
                                                                int ldw, int turned, float* C, int ldc, int M, int N, int K,
                                                                int add, int relu) {
  __shared__ float part[8][32][33];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  int m0 = blockIdx.y * 32, n0 = blockIdx.x * 32;
  bool fours_a = (size_t)A % 16 == 0 && lda % 4 == 0, fours_w = (size_t)W % 16 == 0 && ldw % 4 == 0;
  float d[2][4][4];
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int k = 0; k < 4; k++) d[i][j][k] = 0.f;
  // The order of k within the 16 is the same for both factors, and any: a lane has four neighbours.
#pragma unroll 2
  for (int k0 = warp * 16; k0 < K; k0 += 128) {
    int k = k0 + 4 * t;
    float4 a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int m = m0 + g + 8 * i;
      a[i] = four(A + (size_t)m * lda, m < M, k, K, fours_a);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int n = n0 + g + 8 * j;
      if (!turned) {
        b[j] = four(W + (size_t)n * ldw, n < N, k, K, fours_w);
      } else {
        const float* w = W + (size_t)k * ldw + n;
        b[j].x = n < N && k < K ? w[0] : 0.f;
        b[j].y = n < N && k + 1 < K ? w[ldw] : 0.f;
        b[j].z = n < N && k + 2 < K ? w[2 * (size_t)ldw] : 0.f;
        b[j].w = n < N && k + 3 < K ? w[3 * (size_t)ldw] : 0.f;
      }
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        mma8(d[i][j], tf32(a[2 * i].x), tf32(a[2 * i + 1].x), tf32(a[2 * i].y), tf32(a[2 * i + 1].y), tf32(b[j].x), tf32(b[j].y));
        mma8(d[i][j], tf32(a[2 * i].z), tf32(a[2 * i + 1].z), tf32(a[2 * i].w), tf32(a[2 * i + 1].w), tf32(b[j].z), tf32(b[j].w));
      }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      part[warp][16 * i + g][8 * j + 2 * t] = d[i][j][0];
      part[warp][16 * i + g][8 * j + 2 * t + 1] = d[i][j][1];
      part[warp][16 * i + g + 8][8 * j + 2 * t] = d[i][j][2];
      part[warp][16 * i + g + 8][8 * j + 2 * t + 1] = d[i][j][3];
    }
  __syncthreads();
#pragma unroll
  for (int r = warp; r < 32; r += 8) {
    int m = m0 + r, n = n0 + lane;
    if (m >= M || n >= N) continue;
    float s = add ? C[(size_t)m * ldc + n] : 0.f;
#pragma unroll
    for (int w = 0; w < 8; w++) s += part[w][r][lane];
    C[(size_t)m * ldc + n] = relu ? fmaxf(s, 0.f) : s;
  }
}

#endif
