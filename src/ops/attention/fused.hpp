// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/types.hpp"
#include "tessera/ops/attention.hpp"
#include "tessera/ops/dropout.hpp"

#include "ops/simd/isa.hpp"

/// The inner kernels of fused attention on the CPU: what they take, and their table. Plain data
/// only, since `fused_simd.cpp` is compiled several times.
///
/// A *line* is a row of CSR (a target with its sources) or of CSC (a source with its targets). Its
/// own vertex is *fixed*, the vertices at the other ends of its edges are *gathered*. Forward runs
/// over rows; backward runs over rows for what belongs to targets, and over columns for what
/// belongs to sources, by the same function with the roles exchanged.
///
/// Work is done on blocks of edges: some of a long line, or several short lines together, since
/// what a block costs beside its edges is much for a line with few of them.
namespace tessera::ops::fused {

template <class T>
struct Rows {
  const T* data = nullptr;
  std::int64_t stride = 0;
};

/// No block has more edges, or more lines.
inline constexpr std::int64_t max_block_edges = 64;

static constexpr std::int64_t kept_bytes(std::int64_t heads) { return (heads + 7) / 8; }

/// Edges of consecutive lines: several whole lines that fit a block together, or one line or a
/// piece of it.
struct Lines {
  std::int64_t vertex = 0;  ///< of the first line; those of the others follow
  std::int64_t num_lines = 1;
  const EdgeOffset* offsets = nullptr;  ///< line l: [offsets[l], offsets[l + 1]) - offsets[0]
  const VertexId* others = nullptr;
  std::int64_t count = 0;                 ///< edges of all lines
  std::int64_t readable = 0;              ///< ids at `others`, those of later lines included
  EdgeOffset first_position = 0;          ///< in CSR
  const EdgeOffset* positions = nullptr;  ///< in CSR, where they are not consecutive
};

/// Where the sums of each line's features go: stored as rows, or added to the sums of a long line,
/// or nowhere.
template <class T>
struct LineSums {
  T* rows = nullptr;
  std::int64_t stride = 0;
  SumOf<T>* sums = nullptr;  ///< in the place of `rows`
};

/// Where a slice lies: some consecutive heads, and in each of them some consecutive vectors.
struct SlicePlace {
  std::int64_t head = 0;           ///< the first
  std::int64_t feature = 0;        ///< the first of that head's
  std::int64_t heads = 1;          ///< of the whole row
  std::int64_t width = 1;          ///< of a head
  std::int64_t partial_lanes = 1;  ///< numbers kept per edge and head before they are summed
  bool adds = false;               ///< an earlier slice has begun these heads
  /// The slice has whole heads, and as many as fill vectors: it sums the lanes itself, and
  /// `partial` is one number per edge and head.
  bool sums_lanes = false;
  /// In a slice of heads narrower than a vector, how far the last head's vector is set back, so
  /// that it does not reach past the row.
  std::int64_t set_back = 0;
};

/// The inner loops over a block of edges for one slice, in registers. `S` arrays named after heads
/// have one number per edge and head; others one per feature.
template <class T>
struct SliceFunctions {
  using S = SumOf<T>;
  /// partial[edge][head][lane] = products of fixed and gathered features.
  void (*dot)(const SlicePlace&, const Lines&, const Rows<T>& fixed, const Rows<T>& gathered,
              S* partial);
  /// The same of vector * leaky_relu(fixed + gathered).
  void (*additive)(const SlicePlace&, const Lines&, const Rows<T>& fixed, const Rows<T>& gathered,
                   const S* vector, S slope, S* partial);
  /// Sums of weights[edge][head] * gathered, times scales[line][head] unless that is null.
  void (*weighted_sum)(const SlicePlace&, const Lines&, const Rows<T>& gathered, const S* weights,
                       const S* scales, const LineSums<T>&);
  /// Sums of vector * grads[edge][head] * leaky_relu'(fixed + gathered), if wanted, and
  /// activated_sums (unless null) += grads[edge][head] * leaky_relu(fixed + gathered).
  void (*additive_backward)(const SlicePlace&, const Lines&, const Rows<T>& fixed,
                            const Rows<T>& gathered, const S* grads, const S* vector, S slope,
                            const LineSums<T>&, S* activated_sums);
};

template <class T>
struct Slice {
  const SliceFunctions<T>* functions = nullptr;
  SlicePlace place;
};

template <class T>
struct Problem {
  using S = SumOf<T>;
  AttentionForm form = AttentionForm::gat;
  std::int64_t heads = 1;
  std::int64_t width = 0;
  std::int64_t features = 0;
  std::int64_t score_cols = 0;  ///< of target and source
  std::int64_t block_edges = 1;
  std::int64_t partial_lanes = 1;
  const Slice<T>* slices = nullptr;
  std::int64_t num_slices = 0;
  S slope = 0;
  S scale = 1;
  bool drops = false;
  DropoutConstants dropout;
  /// Which weights are kept: `kept_bytes(heads)` bytes per edge in CSR order, a bit per head.
  /// Forward writes them unless null; backward reads them, or draws them again if null.
  std::uint8_t* kept = nullptr;
  /// Backward: the eight factors of each byte.
  const S* byte_factors = nullptr;

  Rows<T> target, source, value, grad_output;
  const T* vector = nullptr;
  /// Backward: for every row its log_sum and its dO . O, `heads` numbers each.
  const S* row_state = nullptr;
  /// Backward by columns: where the gradient of every score goes, `heads` numbers per edge in CSR
  /// order, unless null. For gat that is all that rows have to sum.
  S* edge_gradients = nullptr;
};

/// Memory for one block of edges, private to a thread.
template <class S>
struct Scratch {
  // One number per edge and head.
  S* scores;
  S* activations;  ///< what the scores' derivatives depend on
  S* weights;
  S* products;  ///< of values and output gradients
  S* grads;
  S* factors;
  S* log_sums;
  S* dots;
  S* partial;  ///< partial_lanes numbers per edge and head
  // One number per line and head.
  S* maxima;
  S* line_sums;
  S* scales;
  // Tiles of one number per head (see simd/heads.hpp).
  S* score_tile;
  S* max_tile;
  S* dot_tile;
  S* max_before;
  // One number per feature.
  S* vector;
  S* activated_sums;
  std::uint64_t* counters;  ///< of dropout
  std::uint32_t* words;
};

/// The softmax of a long row or of a piece of it, not yet divided by its sum.
template <class S>
struct RowSums {
  S* features;  ///< sum of exp(score - max) * value, after dropout
  S* max;       ///< per head
  S* sum;       ///< per head: sum of exp(score - max)
};

/// Where the results of consecutive rows go.
template <class T>
struct RowResults {
  T* output = nullptr;
  std::int64_t output_stride = 0;
  SumOf<T>* log_sum = nullptr;  ///< may be null
  std::int64_t log_sum_stride = 0;
};

template <class T>
struct LineGradients {
  LineSums<T> scores;  ///< of the fixed vertices' target or source rows
  LineSums<T> values;  ///< by columns only
  double* vector = nullptr;
  double* scale = nullptr;
};

template <class T>
struct Functions {
  using S = SumOf<T>;
  /// Cuts a row into slices, and calls add(slice, list) for each.
  void (*make_slices)(std::int64_t heads, std::int64_t width,
                      void (*add)(const Slice<T>& slice, void* list), void* list);
  /// Rows that fit a block together.
  void (*forward)(const Problem<T>&, const Lines&, const RowResults<T>&, const Scratch<S>&);
  /// A long row or a piece of it.
  void (*forward_piece)(const Problem<T>&, const Lines&, const RowSums<S>&, const Scratch<S>&);
  /// Joins a second piece to the first.
  void (*merge)(const Problem<T>&, const RowSums<S>& piece, const RowSums<S>& total);
  /// Divides, and stores.
  void (*finish)(const Problem<T>&, const RowSums<S>&, const RowResults<T>&);
  /// `by_rows`: the fixed vertices are the targets.
  void (*backward)(const Problem<T>&, const Lines&, bool by_rows, const LineGradients<T>&,
                   const Scratch<S>&);
  /// state = log_sum, then dO . O of each head, of as many rows as a block has edges, or fewer.
  void (*row_state)(const Problem<T>&, const Rows<T>& output, VertexId first, std::int64_t count,
                    const Rows<S>& log_sum, S* state, const Scratch<S>&);
  /// Softmax weights of a row's edges before dropout.
  void (*weights)(const Problem<T>&, const Lines&, const S* log_sum, T* weights,
                  std::int64_t stride, const Scratch<S>&);
  void (*store)(const S* from, std::int64_t count, T* to);
  /// sums[head] = the sum over some edges of one number per edge and head.
  void (*sum_edges)(const S* numbers, std::int64_t edges, std::int64_t heads, S* sums);
};

}  // namespace tessera::ops::fused

TESSERA_SIMD_TABLE(ByStorage<fused::Functions>, fused_attention)
