// ---- Many operations in one launch --------------------------------------------------------------------------------
// What a model does step by step, operation after operation. No row needs another row's results, so a cluster of blocks that
// has some of the rows goes through all operations by itself: its blocks share the columns, the rows or the numbers of each,
// and wait for each other after it. Numbers are those of the kernels of the single operations, bit by bit. What an operation's
// addresses and sizes are is said where `tape.rs` makes it.
#if __CUDA_ARCH__ >= 900

enum { PRODUCT, LAYER_NORM, LAYER_NORM_BACK, ATTEND, ATTEND_BACK, VIEW, VIEW_BACK, RECALL, RECALL_BACK, GATE, GATE_BACK, RELU_BACK, SCALE, WALK, WORD, PICK };

struct __align__(16) Op {
  int kind, i[13];
  void* p[9];
};

#define OPS 96     // as in `steps.rs`
#define BLOCKS 16  // of a cluster; likewise

struct Program {
  int count, rows, tile, unused;  // operations, rows, and rows of a cluster
  Ways ways;
  Op ops[OPS];
};

// What a block of a cluster has of its rows lo to hi: of rows, of `parts` of each row (a warp a part), of n numbers of each
// row (a thread a number). A block is together again before it begins a row.
struct Share {
  int rank, lo, hi;
  template <class F> __device__ void rows(F row) const {
    for (int n = lo + rank; n < hi; n += BLOCKS) { __syncthreads(); row(n); }
  }
  template <class F> __device__ void parts(int parts, F part) const {
    for (int n = rank * 8 + threadIdx.x / 32; n < (hi - lo) * parts; n += 8 * BLOCKS) { __syncwarp(); part(lo + n / parts, n % parts); }
  }
  template <class F> __device__ void numbers(int n, F number) const {
    unsigned end = hi * n;
    for (unsigned at = lo * n + rank * 256 + threadIdx.x; at < end; at += 256 * BLOCKS) number(at);
  }
};

extern "C" __global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(256) steps_16(const __grid_constant__ Program program) {
  __shared__ __align__(16) float space[PART];
  const int rank = rank_in_cluster(), warp = threadIdx.x / 32;
  const int lo = blockIdx.x / BLOCKS * program.tile, hi = min(lo + program.tile, program.rows);
  const Share share = {rank, lo, hi};
  const Ways& ways = program.ways;
  for (int k = 0; k < program.count; k++) {
    const Op& op = program.ops[k];
    auto f = [&](int j) { return static_cast<float*>(op.p[j]); };
    auto u = [&](int j) { return static_cast<unsigned*>(op.p[j]); };
    const int* i = op.i;
    auto heads = [&] {
      Heads s = {i[3], 1, 0, 0, i[4], i[5], i[6], i[7], i[8], i[9], i[10], __int_as_float(i[11])};
      return s;
    };
    switch (op.kind) {
      case PRODUCT:
        if (i[3] <= 16 * BLOCKS)
          for (int n = 16 * rank; n < i[3]; n += 16 * BLOCKS)
            small_tile<2>(f(0), i[0], f(1), i[1], i[5], f(2), i[2], hi, i[3], i[4], i[6], i[7], lo, n, space);
        else
          for (int n = 32 * rank; n < i[3]; n += 32 * BLOCKS) {
            __syncthreads();
            small_tile<4>(f(0), i[0], f(1), i[1], i[5], f(2), i[2], hi, i[3], i[4], i[6], i[7], lo, n, space);
          }
        break;
      case LAYER_NORM:
        share.parts(1, [&](int n, int) { norm_fwd_row(f(0), i[0], f(1), i[1], f(2), f(3), f(4), i[2], f(5), i[3], n); });
        break;
      case LAYER_NORM_BACK:
        share.parts(1, [&](int n, int) { norm_bwd_row(f(0), i[0], f(1), i[1], f(2), f(3), f(4), i[2], f(5), f(6), i[3], n); });
        break;
      case ATTEND: {
        Heads s = heads();
        float* score = space + warp * s.ldw;
        share.parts(s.heads, [&](int n, int h) {
          attend_fwd_row(f(0), i[0], f(1), u(2), f(3), i[1], f(4), s, n % s.B, n, h, score);
        });
        break;
      }
      case ATTEND_BACK: {
        Heads s = heads();
        float* score = space + warp * 2 * s.ldw;
        share.parts(s.heads, [&](int n, int h) {
          attend_bwd_row(f(0), i[0], f(1), u(2), f(3), i[1], f(4), f(5), f(6), f(7), i[2], s, n % s.B, n, h, score);
        });
        break;
      }
      case VIEW:
        share.rows([&](int n) { look_fwd_row(f(0), ways.table, u(1), f(2), f(3), ways.F, ways.P, n, space, PART); });
        break;
      case VIEW_BACK:
        share.rows([&](int n) { look_bwd_row(ways.table, u(0), f(1), f(2), f(3), ways.F, ways.P, n, space, PART); });
        break;
      case RECALL:
        share.rows([&](int n) { recall_fwd_row(f(0), i[0], f(1), i[1], f(2), i[2], i[3], i[4], n, space); });
        break;
      case RECALL_BACK:
        share.rows([&](int n) { recall_bwd_row(f(0), i[0], f(1), i[1], f(2), i[2], f(3), f(4), i[3], i[4], n, space); });
        break;
      case GATE:
        share.numbers(i[0], [&](unsigned at) { gate_fwd_at(f(0), f(1), f(2), i[0], at); });
        break;
      case GATE_BACK:
        share.numbers(i[0], [&](unsigned at) { gate_bwd_at(f(0), f(1), f(2), f(3), f(4), i[0], at); });
        break;
      case RELU_BACK:
        share.numbers(i[0], [&](unsigned at) { act_bwd_at(f(0), f(1), 0, at); });
        break;
      case SCALE:
        share.numbers(i[0], [&](unsigned at) { scale_fwd_at(f(0), f(1), f(2), i[0], at); });
        break;
      case WALK:
        share.rows([&](int n) { walk_step_row(ways, f(0), f(1), u(2), u(3), f(4), u(5), u(6), f(7), i[0], n, space); });
        break;
      case WORD:
        share.numbers(i[0], [&](unsigned at) { word_in_at(f(0), u(1), f(2), f(3), i[0], at); });
        break;
      case PICK:
        share.rows([&](int n) { pick_word_row(f(0), f(1), f(2), u(3), u(4), i[0], n); });
        break;
    }
    // The next one's addresses are on their way while this one is waited for.
    const Op& next = program.ops[min(k + 1, program.count - 1)];
    asm volatile("" ::"r"(next.kind), "l"(next.p[0]), "l"(next.p[8]));
    cluster_sync();
  }
}

#endif
