// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/cuts.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/dropout.hpp"

/// What the kernels of fused attention take. A *row* is one of A or of its transpose; its own
/// vertex is *fixed*, the vertices at the other ends of its edges are *gathered*.
namespace tessera::ops {

inline constexpr int attention_block_threads = 128;
inline constexpr int attention_block_warps = attention_block_threads / 32;

/// Vectors of features that one lane sums up.
inline constexpr int attention_vectors = 4;

/// Rows of a matrix stored as T.
struct GpuRows {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

struct GpuOutput {
  void* data = nullptr;
  std::int64_t stride = 0;
};

/// How the heads and features of a row are shared by the blocks of a grid's second dimension. A
/// slice has whole heads, at most 32 of them, or a part of one head.
struct Slices {
  int heads = 1;              ///< of a slice
  int padded_heads = 1;       ///< the next power of two
  std::int64_t per_head = 1;  ///< slices that share a head
  std::int64_t features = 0;  ///< of a slice, at most
  int lanes = 32;             ///< that load the features of one vertex: a power of two
  unsigned count = 1;
};

/// Everything a launch needs; passed to the GPU by value.
struct AttentionLaunch {
  cuda::CutRows rows;
  const VertexId* indices = nullptr;
  const EdgeOffset* positions = nullptr;  ///< of edges in CSR, where a row is a column of A

  AttentionForm form = AttentionForm::gat;
  std::int64_t heads = 1;
  std::int64_t width = 0;  ///< features of a head
  std::int64_t features = 0;
  std::int64_t score_cols = 0;
  Slices slices;
  int dot_lanes = 1;  ///< that compute a dot product of one head together: a power of two

  float slope = 0;
  float scale = 1;
  bool drops = false;
  DropoutConstants dropout;

  GpuRows fixed_scores, gathered_scores;
  const void* vector = nullptr;
  // Cosines: the factor, and 1 / the length of every row.
  const void* factor = nullptr;
  const float* inverse_lengths = nullptr;

  // Forward: V. Backward: dO and V, or V and dO.
  GpuRows fixed_values, gathered_values;
  GpuOutput output;
  float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;

  // Backward.
  bool by_rows = true;
  const float* row_state = nullptr;  ///< for every row its log_sum and dO . O, `heads` numbers each
  GpuOutput score_gradient;          ///< of the fixed vertex's scores; no memory: not wanted
  GpuOutput value_gradient;          ///< by columns
  float* vector_sums = nullptr;      ///< a row of features for every warp of the grid
  double* scale_sums = nullptr;      ///< a number for every warp and slice

  /// Results of pieces, `slot_size` numbers each. Forward: features, then maxima and sums of heads.
  /// Backward: scores, then values.
  float* slots = nullptr;
  std::int64_t slot_size = 0;

  unsigned num_blocks = 0;  ///< of the grid's first dimension
};

/// What backward needs of each row before it goes over edges.
struct RowStateLaunch {
  VertexId num_rows = 0;
  std::int64_t heads = 1;
  std::int64_t width = 0;
  GpuRows output, grad_output;
  const float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;
  float* row_state = nullptr;
};

using AttentionFunction = void (*)(const AttentionLaunch& launch, Stream stream);

/// The kernels of one precision, compiled in units of their own (inst/).
struct AttentionForwardFunctions {
  AttentionFunction aligned, scalar;
  AttentionFunction weights;  ///< into `output`, edges x heads
};

struct AttentionBackwardFunctions {
  AttentionFunction aligned, scalar;
  void (*row_state)(const RowStateLaunch& launch, Stream stream);
  /// Adds up the `num_sums` rows of `sums`.
  void (*store_vector)(const float* sums, std::int64_t num_sums, std::int64_t features, void* to,
                       Stream stream);
};

extern const AttentionForwardFunctions attention_forward_fp32, attention_forward_bf16,
    attention_forward_fp16;
extern const AttentionBackwardFunctions attention_backward_fp32, attention_backward_bf16,
    attention_backward_fp16;

/// Adds up numbers in order.
void store_scale(const double* sums, std::int64_t num_sums, double* to, Stream stream);
/// The same into a 1 x 1 matrix of any type.
void store_factor(const double* sums, std::int64_t num_sums, const Operand& to, Stream stream);

}  // namespace tessera::ops
