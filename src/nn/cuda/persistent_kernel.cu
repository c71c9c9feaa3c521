// ---- Many operations in one launch --------------------------------------------------------------------------------
// A program holds the operations of a decoder's steps, one after another. No row needs another row's results, so a cluster of
// blocks with some of the rows goes through all operations by itself: its blocks divide the columns, rows or elements of each,
// and wait for each other after it. An operation takes a few thousand cycles, so few instructions in each thread and many loads
// in flight make it fast. The results are bit for bit those of the kernels of single operations. `tape.rs` and
// `tape/products.rs` say which addresses and sizes each operation has.
#if __CUDA_ARCH__ >= 900

enum {
  PRODUCT, LAYER_NORM, LAYER_NORM_BACK, ATTEND, ATTEND_BACK, VIEW_ATTENTION, VIEW_ATTENTION_BACK, SIMILARITY_MEMORY, SIMILARITY_MEMORY_BACK, GATE, GATE_BACK, RELU_BACK, ENVIRONMENT_STEP, PICK
};

struct __align__(16) Op {
  int kind, i[13];
  void* p[9];
};

#define OPS 96     // as in `persistent_kernel.rs`
#define BLOCKS 16  // of a cluster; likewise

struct Program {
  int count, rows, unused[2];  // operations, and their rows
  Transitions transitions;
  Op ops[OPS];
};

// A block's share of its cluster's rows lo to hi: whole rows, some of the `parts` of each row (one warp a part), or some of the n
// elements of each row (one thread an element). The threads of a block synchronise before each row.
struct Share {
  int rank, lo, hi;
  template <class F> __device__ void rows(F row) const {
    for (int n = lo + rank; n < hi; n += BLOCKS) { __syncthreads(); row(n); }
  }
  template <class F> __device__ void parts(int parts, F part) const {
    for (int n = rank * 8 + thread() / 32; n < (hi - lo) * parts; n += 8 * BLOCKS) { __syncwarp(); part(lo + n / parts, n % parts); }
  }
  template <class F> __device__ void numbers(int n, F number) const {
    unsigned end = hi * n;
    for (unsigned at = lo * n + rank * 256 + thread(); at < end; at += 256 * BLOCKS) number(at);
  }
};

#define WEIGHTS (88 * 272)   // numbers of shared memory: a block's columns of a weight,
#define SPACE (8 * 16 * 96)  // what operations need for themselves,
#define VIEWS (2 * 18 * 320)  // and the views of the places of a block's rows

// Writes of this block are seen by the others that have waited. One warp tells them for all.
__device__ __forceinline__ void arrive() {
  __syncthreads();
  if (thread() < 32) asm volatile("fence.acq_rel.cluster;" ::: "memory");
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// Programs of what goes forwards, or (BACK) backwards, for clusters of 16·TILES rows.
template <int TILES, bool BACK> __device__ __forceinline__ void steps(const Program& program) {
  extern __shared__ __align__(16) float space[];
  float *weights = space + SPACE, *views = weights + WEIGHTS;
  __shared__ int held[2];  // whose views lie there
  const int rank = rank_in_cluster(), warp = thread() / 32;
  const int lo = blockIdx.x / BLOCKS * 16 * TILES, hi = min(lo + 16 * TILES, program.rows);
  const Share share = {rank, lo, hi};
  const Transitions& transitions = program.transitions;
  const unsigned weights_at = (unsigned)__cvta_generic_to_shared(weights);
  if (thread() < 2) held[thread()] = -1;
  // The weights of a product are on their way while the operation before it is waited for.
  auto ahead = [&](const Op& op) {
    if (op.kind != PRODUCT) return;
    int cols = op.i[8], n = cols * rank;
    if (cols && n < op.i[3]) fetch(static_cast<float*>(op.p[1]), op.i[1], op.i[5], op.i[3], op.i[4], n, cols, weights_at);
  };
  auto held_of = [&](int n) {
    int at = (n - lo) / BLOCKS;
    Held h = {transitions.F <= 320 ? held + at : nullptr, views + at * 18 * 320};
    return h;
  };
  ahead(program.ops[0]);
  for (int k = 0; k < program.count; k++) {
    const Op& op = program.ops[k];
    auto f = [&](int j) { return static_cast<float*>(op.p[j]); };
    auto u = [&](int j) { return static_cast<unsigned*>(op.p[j]); };
    const int* i = op.i;
    auto heads = [&] {
      Heads s = {i[3], 1, 0, 0, i[4], i[5], i[6], i[7], i[8], i[9], i[10], __int_as_float(i[11])};
      return s;
    };
    if (op.kind == PRODUCT) {
      // Columns that a block makes at once, where they can be fetched.
      int cols = i[8], N = i[3];
      if (cols) {
        Onto onto = {f(2), f(4), f(3), i[2], i[9], i[10] ? i[10] : N, i[6], i[7]};
#pragma unroll 1
        for (int n = cols * rank; n < N; n += cols * BLOCKS) {
          if (n > cols * rank) { __syncthreads(); fetch(f(1), i[1], i[5], N, i[4], n, cols, weights_at); }
#define READY(J, T) ready_tile<TILES, J, T>(f(0), i[0], weights, onto, N, i[4], lo, n, space)
          if (BACK && i[5]) {
            if (cols == 16) READY(2, true);
            else if (cols == 32) READY(4, true);
            else READY(8, true);
          } else {
            if (cols == 16) READY(2, false);
            else if (cols == 32) READY(4, false);
            else if (cols == 64) READY(8, false);
            else READY(11, false);
          }
        }
      } else
        for (int n = 32 * rank; n < N; n += 32 * BLOCKS) {
          __syncthreads();
          small_tile<4>(f(0), i[0], f(1), i[1], i[5], f(2), i[2], hi, N, i[4], i[6], i[7], f(3), lo, n, space);
        }
    } else if (!BACK)
      switch (op.kind) {
        case LAYER_NORM:
          share.parts(1, [&](int n, int) { norm_fwd_row(f(0), i[0], f(1), i[1], f(2), f(3), f(4), i[2], f(5), i[3], n); });
          break;
        case ATTEND: {
          Heads s = heads();
          float* score = space + warp * s.ldw;
          share.parts(s.heads, [&](int n, int h) {
            attend_fwd_row(f(0), i[0], f(1), u(2), f(3), i[1], f(4), s, n % s.B, n, h, score);
          });
          break;
        }
        case VIEW_ATTENTION:
          share.rows([&](int n) {
            view_attention_fwd_row(f(0), i[0], transitions.table, u(1), f(2), i[1], f(3), transitions.F, transitions.P, n, space, SPACE, held_of(n));
          });
          break;
        case SIMILARITY_MEMORY:
          share.rows([&](int n) { similarity_fwd_row(f(0), i[0], f(1), i[1], f(2), i[2], i[3], i[4], n, space); });
          break;
        case GATE:
          share.numbers(i[0], [&](unsigned at) { gate_fwd_at(f(0), f(1), f(2), i[0], at); });
          break;
        case ENVIRONMENT_STEP:
          share.rows([&](int n) {
            environment_step_row(transitions, f(0), i[1], f(1), u(2), u(3), f(4), u(5), u(6), f(7), i[2], i[0], n, space, held_of(n));
          });
          break;
        case PICK:
          share.rows([&](int n) { pick_word_row(f(0), i[1], f(1), f(2), u(3), u(4), i[0], f(5), f(6), f(7), i[2], n); });
          break;
      }
    else
      switch (op.kind) {
        case LAYER_NORM_BACK:
          share.parts(1, [&](int n, int) { norm_bwd_row(f(0), i[0], f(1), i[1], f(2), f(3), f(4), i[2], f(5), f(6), i[3], n); });
          break;
        case ATTEND_BACK: {
          Heads s = heads();
          float* score = space + warp * 2 * s.ldw;
          share.parts(s.heads, [&](int n, int h) {
            attend_bwd_row(f(0), i[0], f(1), u(2), f(3), i[1], f(4), f(5), f(6), f(7), i[2], s, n % s.B, n, h, score);
          });
          break;
        }
        case VIEW_ATTENTION_BACK:
          share.rows([&](int n) { view_attention_bwd_row(transitions.table, u(0), f(1), f(2), f(3), transitions.F, transitions.P, n, space, SPACE, held_of(n)); });
          break;
        case SIMILARITY_MEMORY_BACK:
          share.rows([&](int n) { similarity_bwd_row(f(0), i[0], f(1), i[1], f(2), i[2], f(3), f(4), i[3], i[4], n, space); });
          break;
        case GATE_BACK:
          share.numbers(i[0], [&](unsigned at) { gate_bwd_at(f(0), f(1), f(2), f(3), f(4), i[0], at); });
          break;
        case RELU_BACK:
          share.numbers(i[0], [&](unsigned at) { act_bwd_at(f(0), f(1), 0, at); });
          break;
      }
    // The next operation may not need this one.
    if (i[12]) {
      __syncthreads();
      if (k + 1 < program.count) ahead(program.ops[k + 1]);
      continue;
    }
    arrive();
    if (k + 1 < program.count) ahead(program.ops[k + 1]);
    wait();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

#define CLUSTER extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(256)
CLUSTER few_16(const __grid_constant__ Program program) { steps<1, false>(program); }
CLUSTER many_16(const __grid_constant__ Program program) { steps<2, false>(program); }
CLUSTER back_16(const __grid_constant__ Program program) { steps<1, true>(program); }

#endif
