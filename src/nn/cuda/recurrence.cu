// ---- LSTM, all steps in one launch --------------------------------------------------------------------------------
// For cards with thread block clusters (compute capability 9.0). A cluster of C blocks has 32 rows of a batch and all
// H = 32·C units, 32 a block, whose part of the recurrent weight stays in registers for all steps. What the blocks of a
// cluster have to tell each other goes straight into each other's shared memory, where a barrier counts the bytes; clusters
// have nothing to do with each other. Factors of products are rounded to 10 bits of mantissa, as in TF32, but are float16,
// which is half to send: h is within ±1, and gradients are scaled by powers of two.
//
// Of 8 warps in a block, warp w has units 4w to 4w + 3; lane 4g + t has unit t of them in rows g, g + 8, g + 16 and g + 24.
#if __CUDA_ARCH__ >= 900

#define BLOCK 2048  // bytes of 32 rows x 32 units in float16

// To within 1e-6, which is far less than the products are rounded by.
__device__ __forceinline__ float fast_sigm(float x) { return __fdividef(1.f, 1.f + __expf(-x)); }
__device__ __forceinline__ float fast_tanh(float x) { return 2.f * fast_sigm(2.f * x) - 1.f; }

__device__ __forceinline__ unsigned pack(float a, float b) {  // the first in the low half
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
  return r;
}
__device__ __forceinline__ float2 unpack(unsigned v) {
  float2 r;
  asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(r.x), "=f"(r.y) : "r"(v));
  return r;
}

// d += a · b: 16 x 16 times 16 x 8.
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 blocks of float16 from shared memory; lanes 8i to 8i + 7 name the rows of block i.
__device__ __forceinline__ void ldmatrix(unsigned (&r)[4], unsigned row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}

__device__ __forceinline__ unsigned rank_in_cluster() {
  unsigned r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
// The place in another block's shared memory that `at` is in this one's.
__device__ __forceinline__ unsigned peer(unsigned at, unsigned rank) {
  unsigned r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(at), "r"(rank));
  return r;
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// After this fence and the next barrier, copies see the shared memory that this thread wrote.
__device__ __forceinline__ void before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Copies shared memory to the same or another place of a block of the cluster, and counts the bytes at a barrier there.
__device__ __forceinline__ void copy_to(unsigned rank, unsigned to, unsigned from, unsigned bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(peer(to, rank)),
               "r"(from), "r"(bytes), "r"(peer(barrier, rank)) : "memory");
}
// A number to a block of the cluster.
__device__ __forceinline__ void send(unsigned rank, unsigned to, unsigned value, unsigned barrier) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(peer(to, rank)), "r"(value),
               "r"(peer(barrier, rank)) : "memory");
}

// Two boxes that the cluster inits in turn, each `bytes` with its barrier. Nobody can fill a box anew that a warp still
// reads: to have something to send, every block needs all of the fill between, which that warp sends after it has read.
struct Boxes {
  unsigned barriers, bytes, filled;

  __device__ void begin(unsigned at, unsigned bytes_) {
    barriers = at; bytes = bytes_; filled = 0;
    if (threadIdx.x == 0) {
      for (int i = 0; i < 2; i++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at + 8 * i) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      expect(0);
      expect(1);
    }
    cluster_sync();
  }
  __device__ void expect(unsigned box) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barriers + 8 * box), "r"(bytes) : "memory");
  }
  // The box that is filled next, and its barrier.
  __device__ unsigned next() const { return filled & 1; }
  __device__ unsigned barrier() const { return barriers + 8 * next(); }
  // Waits until the last begun fill is there; gives its box.
  __device__ unsigned wait() {
    unsigned box = (filled - 1) & 1, parity = (filled - 1) >> 1 & 1, done;
    do asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                    : "=r"(done) : "r"(barriers + 8 * box), "r"(parity) : "memory");
    while (!done);
    if (threadIdx.x == 0) expect(box);
    return box;
  }
};

struct Recurrence {
  const float* W;         // [4H, H]
  const float *h0, *c0;   // [B, H], or 0: zero
  float* hs;              // [T, B, H]
  float4* cells;          // [T, tiles, C, 256]: of each thread, its 4 rows; forwards without gates: 0
  float4* gates;          // [T, tiles, C, 4, 256]: of each thread and row, its 4 gates after their functions; or 0
  const unsigned* len;    // [B]
  int T, B;
};

// Input projections of the symbols as in lstm_cell_fwd; c_last [B, H] where not 0.
template <int C>
__device__ void recurrence_forward(const Recurrence& R, const float* __restrict__ table, const unsigned* __restrict__ ids, int G,
                                   int count_pad, float* __restrict__ c_last) {
  constexpr int H = 32 * C, K = 2 * C;
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned base = (unsigned)__cvta_generic_to_shared(shared), rank = rank_in_cluster();
  int tid = threadIdx.x, lane = tid & 31, w = tid >> 5, g = lane >> 2, t = lane & 3;
  int unit = rank * 32 + w * 4 + t, clusters = gridDim.x / C, T = R.T, B = R.B, tiles = (B + 31) / 32;
  size_t BH = (size_t)B * H;
  Boxes boxes;
  boxes.begin(base + 2 * C * BLOCK, (C - 1) * BLOCK);

  // Columns of the product: (unit, gate) = (n / 2, n % 2) in the first eight, gates 2 and 3 in the other.
  unsigned weight[K][2][2];
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const float* row = R.W + ((size_t)(2 * j + (g & 1)) * H + rank * 32 + w * 4 + (g >> 1)) * H + k * 16 + 2 * t;
      float2 a = *reinterpret_cast<const float2*>(row), b = *reinterpret_cast<const float2*>(row + 8);
      weight[k][j][0] = pack(a.x, a.y);
      weight[k][j][1] = pack(b.x, b.y);
    }
  // In a box, eights of units follow each other; in an eight, rows of 16 bytes: 8 rows touch all banks.
  unsigned a_at = (lane >> 4) * 512 + ((lane & 7) + (lane >> 3 & 1) * 8) * 16;
  unsigned mine = rank * BLOCK + w / 2 * 512 + (g + 8 * t) * 16 + (w & 1) * 8;

  for (int tile = blockIdx.x / C; tile < tiles; tile += clusters) {
    int row[4], length[4];
    float h[4], c[4], x[4][4];
    unsigned id[4];
    int longest = 0;
    for (int i = 0; i < 4; i++) {
      row[i] = tile * 32 + g + 8 * i;
      bool there = row[i] < B;
      length[i] = there ? (int)R.len[row[i]] : 0;
      h[i] = there && R.h0 ? R.h0[(size_t)row[i] * H + unit] : 0.f;
      c[i] = there && R.c0 ? R.c0[(size_t)row[i] * H + unit] : 0.f;
      longest = max(longest, length[i]);
    }
    longest = min((int)__reduce_max_sync(~0u, longest), T);  // each warp has all rows: the same in all blocks
    auto read_ids = [&](int s) {
      if (G == 1)
        for (int i = 0; i < 4; i++) id[i] = s < length[i] ? ids[(size_t)s * B + row[i]] : 0;
    };
    auto project = [&](int s) {
      for (int i = 0; i < 4; i++) {
        for (int q = 0; q < 4; q++) x[i][q] = 0.f;
        if (s >= length[i]) continue;
        if (G == 1) {
          const float* p = table + (size_t)id[i] * 4 * H + unit;
          for (int q = 0; q < 4; q++) x[i][q] = p[q * H];
        } else {
          int n = 0;
          for (int k = 0; k < G; k++) {
            unsigned v = ids[((size_t)s * B + row[i]) * G + k];
            if (v == 0 && !count_pad) continue;
            const float* p = table + (size_t)v * 4 * H + unit;
            for (int q = 0; q < 4; q++) x[i][q] += p[q * H];
            n++;
          }
          float share = n ? 1.f / n : 0.f;
          for (int q = 0; q < 4; q++) x[i][q] *= share;
        }
      }
    };
    read_ids(0);
    project(0);
    read_ids(1);
    unsigned box = boxes.next() ^ 1;  // where h0 goes
    if (R.h0) {
      __syncthreads();
      for (int i = tid; i < 32 * H / 2; i += 256) {
        int r = i / (H / 2), k = i % (H / 2) * 2, b = tile * 32 + r;
        float2 v = b < B ? *reinterpret_cast<const float2*>(R.h0 + (size_t)b * H + k) : make_float2(0.f, 0.f);
        unsigned at = box * C * BLOCK + k / 8 * 512 + r * 16 + k % 8 * 2;
        *reinterpret_cast<unsigned*>(shared + at) = pack(v.x, v.y);
      }
      __syncthreads();
    }

    for (int s = 0; s < longest; s++) {
      float acc[2][2][4];
      for (int m = 0; m < 2; m++)
        for (int j = 0; j < 2; j++)
          for (int i = 0; i < 4; i++) acc[m][j][i] = x[2 * m + i / 2][2 * j + i % 2];
      if (s) box = boxes.wait();
      if (s || R.h0) {
        unsigned from = base + box * C * BLOCK;
#pragma unroll
        for (int k = 0; k < K; k++) {
          unsigned a[2][4];
          ldmatrix(a[0], from + a_at + k * 1024);
          ldmatrix(a[1], from + a_at + k * 1024 + 16 * 16);
          for (int m = 0; m < 2; m++)
            for (int j = 0; j < 2; j++) mma(acc[m][j], a[m], weight[k][j][0], weight[k][j][1]);
        }
      }
      float4 gate[4];
      for (int i = 0; i < 4; i++) {
        const float(&p)[2][4] = acc[i / 2];
        float4 v = make_float4(fast_sigm(p[0][i % 2 * 2]), fast_sigm(p[0][i % 2 * 2 + 1]), fast_tanh(p[1][i % 2 * 2]), fast_sigm(p[1][i % 2 * 2 + 1]));
        if (s < length[i]) {
          c[i] = v.y * c[i] + v.x * v.z;
          h[i] = v.w * fast_tanh(c[i]);
        }
        gate[i] = v;
      }
      if (s + 1 < longest) {
        // Four lanes have four rows of four units: each gets the units of one row.
        unsigned low = pack(h[0], h[1]), high = pack(h[2], h[3]);
        unsigned other = __shfl_xor_sync(~0u, t < 2 ? high : low, 2);
        unsigned a = t < 2 ? low : other, b = t < 2 ? other : high;
        unsigned even = __byte_perm(a, b, 0x5410), odd = __byte_perm(a, b, 0x7632);
        unsigned keep = t & 1 ? odd : even, got = __shfl_xor_sync(~0u, t & 1 ? even : odd, 1);
        unsigned first = t & 1 ? got : keep, second = t & 1 ? keep : got;
        unsigned u01 = __byte_perm(first, second, 0x5410), u23 = __byte_perm(first, second, 0x7632);
        unsigned next = boxes.next() * C * BLOCK;
        *reinterpret_cast<uint2*>(shared + next + mine) = make_uint2(u01, u23);
        before_copies();
        __syncthreads();
        unsigned own = base + next + rank * BLOCK;
        if (tid < C && tid != rank) copy_to(tid, own, own, BLOCK, boxes.barrier());
        boxes.filled++;
        project(s + 1);
        read_ids(s + 2);
      }
      size_t kept = ((size_t)s * tiles + tile) * C + rank;
      for (int i = 0; i < 4; i++)
        if (row[i] < B) R.hs[s * BH + (size_t)row[i] * H + unit] = h[i];
      if (R.gates) {
        R.cells[kept * 256 + tid] = make_float4(c[0], c[1], c[2], c[3]);
        for (int i = 0; i < 4; i++) R.gates[(kept * 4 + i) * 256 + tid] = gate[i];
      }
    }
    for (int s = longest; s < T; s++)
      for (int i = 0; i < 4; i++)
        if (row[i] < B) R.hs[s * BH + (size_t)row[i] * H + unit] = h[i];
    if (c_last)
      for (int i = 0; i < 4; i++)
        if (row[i] < B) c_last[(size_t)row[i] * H + unit] = c[i];
  }
  cluster_sync();  // shared memory stays until all have sent
}

// dgates [T, B, 4H] from what the way forward kept and grad_h [T, B, H]; (dh, dc) is the gradient of (h0, c0), that of h only
// if h0 is there. A block multiplies the gradient of its gates with its rows of W: its part of the gradient of the earlier h
// for all units, of which each other block is sent what belongs to it.
template <int C>
__device__ void recurrence_backward(const Recurrence& R, const float* __restrict__ grad_h, const float* __restrict__ dh_last,
                                    const float* __restrict__ dc_last, float* __restrict__ dgates, float* __restrict__ dh_out,
                                    float* __restrict__ dc_out) {
  constexpr int H = 32 * C, N = C / 2, PITCH = 136;  // N: eights of units that a warp multiplies for
  extern __shared__ __align__(128) unsigned char shared[];
  unsigned base = (unsigned)__cvta_generic_to_shared(shared), rank = rank_in_cluster();
  unsigned leaving = 2 * C * BLOCK, scales = 2 * leaving, d_at = scales + 2 * 4 * C, tops = d_at + 32 * PITCH * 2;
  int tid = threadIdx.x, lane = tid & 31, w = tid >> 5, g = lane >> 2, t = lane & 3;
  int unit = rank * 32 + w * 4 + t, clusters = gridDim.x / C, T = R.T, B = R.B, tiles = (B + 31) / 32;
  size_t BH = (size_t)B * H;
  Boxes boxes;
  boxes.begin(base + tops + 32, C * (BLOCK + 4));

  // Rows of the product: 4·unit + gate; columns: units of all blocks.
  unsigned weight[8][N][2];
#pragma unroll
  for (int k = 0; k < 8; k++)
#pragma unroll
    for (int n = 0; n < N; n++) {
      const float* at = R.W + ((size_t)(t & 1) * 2 * H + rank * 32 + k * 4 + (t >> 1)) * H + w * 4 * C + n * 8 + g;
      weight[k][n][0] = pack(at[0], at[(size_t)H * H]);
      weight[k][n][1] = pack(at[2 * H], at[(size_t)H * H + 2 * H]);
    }
  unsigned a_at = base + d_at + ((lane & 7) + (lane >> 3 & 1) * 8) * PITCH * 2 + (lane >> 4) * 16;

  for (int tile = blockIdx.x / C; tile < tiles; tile += clusters) {
    int row[4], length[4];
    float dh[4], dc[4], grad[4];
    float4 gate[4];
    float c[4], c_prev[4];
    int longest = 0;
    for (int i = 0; i < 4; i++) {
      row[i] = tile * 32 + g + 8 * i;
      bool there = row[i] < B;
      length[i] = there ? (int)R.len[row[i]] : 0;
      dh[i] = there && dh_last ? dh_last[(size_t)row[i] * H + unit] : 0.f;
      dc[i] = there && dc_last ? dc_last[(size_t)row[i] * H + unit] : 0.f;
      longest = max(longest, length[i]);
    }
    longest = min((int)__reduce_max_sync(~0u, longest), T);
    auto write = [&](int s, int i, float4 v) {
      float* to = dgates + (s * (size_t)B + row[i]) * 4 * H + unit;
      if (row[i] < B) to[0] = v.x, to[H] = v.y, to[2 * H] = v.z, to[3 * H] = v.w;
    };
    // Where all rows have ended, all is carried.
    for (int s = T - 1; s >= longest; s--)
      for (int i = 0; i < 4; i++) {
        if (row[i] < B) dh[i] += grad_h[s * BH + (size_t)row[i] * H + unit];
        write(s, i, make_float4(0.f, 0.f, 0.f, 0.f));
      }
    auto kept = [&](int s) { return ((size_t)s * tiles + tile) * C + rank; };
    auto read = [&](int s) {
      for (int i = 0; i < 4; i++) {
        grad[i] = row[i] < B ? grad_h[s * BH + (size_t)row[i] * H + unit] : 0.f;
        gate[i] = R.gates[(kept(s) * 4 + i) * 256 + tid];
      }
      if (s) {
        float4 v = R.cells[kept(s - 1) * 256 + tid];
        c_prev[0] = v.x; c_prev[1] = v.y; c_prev[2] = v.z; c_prev[3] = v.w;
      } else {
        for (int i = 0; i < 4; i++) c_prev[i] = row[i] < B && R.c0 ? R.c0[(size_t)row[i] * H + unit] : 0.f;
      }
    };
    float4 last = longest ? R.cells[kept(longest - 1) * 256 + tid] : make_float4(0.f, 0.f, 0.f, 0.f);
    c[0] = last.x; c[1] = last.y; c[2] = last.z; c[3] = last.w;
    if (longest) read(longest - 1);
    // Adds to dh what the blocks have sent.
    auto receive = [&]() {
      unsigned box = boxes.wait();
      const unsigned char* at = shared + box * C * BLOCK + ((w * 2 + t / 2) * 8 + g) * 16 + (t & 1) * 8;
      const float* by = reinterpret_cast<const float*>(shared + scales) + box * C;
      float sum[4] = {};
#pragma unroll
      for (int p = 0; p < C; p++) {
        uint2 v = *reinterpret_cast<const uint2*>(at + p * BLOCK);
        float2 a = unpack(v.x), b = unpack(v.y);
        float m = by[p];
        sum[0] += a.x * m; sum[1] += a.y * m; sum[2] += b.x * m; sum[3] += b.y * m;
      }
      for (int i = 0; i < 4; i++) dh[i] += sum[i];
    };

    for (int s = longest - 1; s >= 0; s--) {
      if (s < longest - 1) receive();
      float4 d[4];
      float top = 0.f;
      for (int i = 0; i < 4; i++) {
        float all = dh[i] + grad[i];
        d[i] = make_float4(0.f, 0.f, 0.f, 0.f);
        if (s < length[i]) {
          float4 v = gate[i];
          float tc = fast_tanh(c[i]), e = dc[i] + all * v.w * (1.f - tc * tc);
          dc[i] = e * v.y;
          d[i] = make_float4(e * v.z * v.x * (1.f - v.x), e * c_prev[i] * v.y * (1.f - v.y), e * v.x * (1.f - v.z * v.z),
                             all * tc * v.w * (1.f - v.w));
          all = 0.f;  // all of it goes through the gates; of rows that have ended, all is carried
        }
        dh[i] = all;
        top = fmaxf(top, fmaxf(fmaxf(fabsf(d[i].x), fabsf(d[i].y)), fmaxf(fabsf(d[i].z), fabsf(d[i].w))));
      }
      for (int i = 0; i < 4; i++) c[i] = c_prev[i];
      if (s || R.h0) {
        // Scaled by a power of two so that the largest is between 1 and 2.
        unsigned exponent = __reduce_max_sync(~0u, __float_as_uint(top)) >> 23;
        unsigned* all_tops = reinterpret_cast<unsigned*>(shared + tops);
        if (lane == 0) all_tops[w] = exponent;
        __syncthreads();
        for (int i = 0; i < 8; i++) exponent = max(exponent, all_tops[i]);
        exponent = min(max(exponent, 1u), 253u);
        float up = __uint_as_float((254u - exponent) << 23);
        for (int i = 0; i < 4; i++) {
          uint2 v = make_uint2(pack(d[i].x * up, d[i].y * up), pack(d[i].z * up, d[i].w * up));
          *reinterpret_cast<uint2*>(shared + d_at + ((g + 8 * i) * PITCH + (w * 4 + t) * 4) * 2) = v;
        }
        __syncthreads();
        unsigned box = boxes.next(), barrier = boxes.barrier();
        if (tid < C) send(tid, base + scales + (box * C + rank) * 4, exponent << 23, barrier);
        unsigned half[N][2];
        float acc[N][4];
        for (int m = 0; m < 2; m++) {
          for (int n = 0; n < N; n++)
            for (int i = 0; i < 4; i++) acc[n][i] = 0.f;
#pragma unroll
          for (int k = 0; k < 8; k++) {
            unsigned a[4];
            ldmatrix(a, a_at + (m * 16 * PITCH + k * 16) * 2);
            for (int n = 0; n < N; n++) mma(acc[n], a, weight[k][n][0], weight[k][n][1]);
          }
          if (m == 0)
            for (int n = 0; n < N; n++) {
              half[n][0] = pack(acc[n][0], acc[n][2]);
              half[n][1] = pack(acc[n][1], acc[n][3]);
            }
        }
        // Outgoing values have the layout of incoming ones: by block, pair of units, g, and then 4 rows of each unit.
        unsigned own = leaving + (box * 8 + w) * C * BLOCK / 8;
        for (int n = 0; n < N; n++)
          *reinterpret_cast<uint4*>(shared + own + ((n * 4 + t) * 8 + g) * 16) =
              make_uint4(half[n][0], pack(acc[n][0], acc[n][2]), half[n][1], pack(acc[n][1], acc[n][3]));
        before_copies();
        __syncwarp();
        constexpr unsigned SOME = C > 8 ? BLOCK : C * BLOCK / 8;
        if (lane < C * BLOCK / 8 / SOME) {
          unsigned begin = w * C * BLOCK / 8 + lane * SOME;  // of all that leaves
          copy_to(begin / BLOCK, base + (box * C + rank) * BLOCK + begin % BLOCK, base + own + lane * SOME, SOME, barrier);
        }
        boxes.filled++;
      }
      if (s) read(s - 1);
      for (int i = 0; i < 4; i++) write(s, i, d[i]);
    }
    if (R.h0 && longest) receive();
    for (int i = 0; i < 4; i++)
      if (row[i] < B) {
        dh_out[(size_t)row[i] * H + unit] = dh[i];
        dc_out[(size_t)row[i] * H + unit] = dc[i];
      }
  }
  cluster_sync();
}

#define RECURRENCE(C)                                                                                                       \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(256, 1)                                            \
      lstm_fwd_##C(const float* table, const unsigned* ids, int G, int count_pad, const float* W, const float* h0,          \
                   const float* c0, float* hs, float4* cells, float4* gates, float* c_last, const unsigned* len, int T, int B) { \
    recurrence_forward<C>(Recurrence{W, h0, c0, hs, cells, gates, len, T, B}, table, ids, G, count_pad, c_last);            \
  }                                                                                                                         \
  extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(256, 1)                                            \
      lstm_bwd_##C(const float* W, const float* h0, const float* c0, float4* cells, float4* gates, const float* grad_h,     \
                   const float* dh_last, const float* dc_last, float* dgates, float* dh_out, float* dc_out,                 \
                   const unsigned* len, int T, int B) {                                                                     \
    recurrence_backward<C>(Recurrence{W, h0, c0, nullptr, cells, gates, len, T, B}, grad_h, dh_last, dc_last, dgates,       \
                           dh_out, dc_out);                                                                                 \
  }
RECURRENCE(2)
RECURRENCE(4)
RECURRENCE(8)
RECURRENCE(16)
#endif
