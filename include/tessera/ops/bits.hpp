// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/core/device.hpp"
#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/bit_forms.hpp"
#include "tessera/ops/plan.hpp"
#include "tessera/quant/affine.hpp"
#include "tessera/quant/bit_tensor.hpp"

/// Products of few bits, exact in integers.
///
///     bit_gemm        S[i][j] = sum over k of A[i][k] B[j][k]      codes of a_bits and of b_bits
///     bit_aggregate   S[i][j] = sum over sources k of i of B[k][j]  a graph's pattern, codes of
///     b_bits
///     bit_lists       the same, but the sources of every row come with the run
///
/// What becomes of the sums, in fp32:
///
///     s = S[i][j] + own B[i][j]                                      own: bit_aggregate's
///     v = row_scale[i] col_scale[j] s + bias[j] + sum over t of row_terms[i][t] col_terms[t][j]
///     v = result_scale[i] activate(norm_scale[j] v + norm_shift[j])
///
/// Codes stand for numbers with a lower bound of their own, so that products of numbers need terms
/// that the codes' product lacks: docs/quantisation.md has them. Batch norm is its last line.
namespace tessera::ops {

struct BitOptions : PlanOptions {
  std::int64_t rows = 0;   ///< of A and of the result
  std::int64_t cols = 0;   ///< rows of B, columns of the result
  std::int64_t depth = 0;  ///< what is summed over
  /// bit_gemm: A has blocks on its diagonal and nothing else, and comes without the rest: rows of
  /// so many columns, which begin where `BitInputs::block_starts` says. 0: `depth` columns.
  /// bit_lists: the same of the lists, 1 to 65536 columns.
  std::int64_t block = 0;
  /// bit_gemm: words in every row of an A that comes with the runs, at least as many as `depth`
  /// bits fill. 0: as many as a bit tensor has.
  std::int64_t a_words = 0;
  /// bit_aggregate, bit_lists: the same of B, whose rows are packed along the features, for `cols`.
  std::int64_t b_words = 0;
  int a_bits = 1;
  int b_bits = 8;
  /// bit_aggregate, bit_lists: B comes as codes of a byte each, not as planes.
  bool b_bytes = false;
  BitOutput output = BitOutput::sums32;
  BitActivation activation = BitActivation::none;
  /// How values become codes, for `rows`, `columns` and `bytes`: one range, or one per column.
  std::optional<quant::Affine> requantise = {};
  /// Codes packed along rows: words in every row, at least as many as `cols` bits fill. 0: as many
  /// as a bit tensor has.
  std::int64_t codes_words = 0;
  int terms = 0;  ///< of the epilogue, 0 to 2
  /// bit_gemm with values or codes as output: runs bring no row terms. The first is the row scale
  /// times the sum of the codes in the row of A, the second the row scale itself.
  bool terms_of_a = false;
  /// bit_aggregate with values or codes as output, on a square graph: what the codes of a target
  /// itself are multiplied by before they are added to those of its sources (GIN's 1 + eps).
  float own = 0;
};

using BitPlan = Plan<BitOptions>;

/// Both operands come with every run.
BitPlan plan_bit_gemm(const BitOptions& options);

/// A stays: its rows, depth and bits are those of the plan, and tiles of it without any bit are
/// skipped by an index that is made here. The adjacency of a batch is one (`quant::pack_pattern`).
BitPlan plan_bit_gemm(const quant::BitTensor& a, const BitOptions& options);

/// The pattern of a graph, of which `rows`, `depth` and `a_bits` are taken. Row scales belong into
/// the epilogue and column scales into the numbers before they are quantised; edges with values of
/// their own are an error. B holds a row per source, packed along the features.
BitPlan plan_bit_aggregate(const Graph& graph, const BitOptions& options);

/// As bit_aggregate, over blocks whose edges come with every run as lists of sources: smaller than
/// blocks of bits where fewer than one in 16 of these would be set. B of up to 8 bits.
BitPlan plan_bit_lists(const BitOptions& options);

/// Absent parts leave their factor at 1, or their summand at 0.
struct BitEpilogue {
  MatrixView<const float> row_scale = {};   ///< rows x 1
  MatrixView<const float> col_scale = {};   ///< 1 x cols
  MatrixView<const float> row_terms = {};   ///< rows x terms
  MatrixView<const float> col_terms = {};   ///< terms x cols
  MatrixView<const float> bias = {};        ///< 1 x cols
  MatrixView<const float> norm_scale = {};  ///< 1 x cols
  MatrixView<const float> norm_shift = {};  ///< 1 x cols
  /// rows x 1; such as the column scale of the graph that the result is summed over next.
  MatrixView<const float> result_scale = {};
};

struct BitInputs {
  quant::BitTensorView<const std::uint32_t> a = {};  ///< absent where the plan has it
  quant::BitTensorView<const std::uint32_t> b = {};  ///< absent where bytes come
  BitEpilogue epilogue = {};
  /// Of an A in blocks, on the device: the column of the whole that the block of every 64 rows
  /// begins at, a multiple of 128 below `depth`. (rows + 63) / 64 of them.
  MatrixView<const std::int32_t> block_starts = {};
  /// bit_lists: where the sources of every row begin among all of them, and at last where they end,
  /// (rows + 1) x 1; and the sources, each counted from the start of its row's block, 1 x as many
  /// as there are.
  MatrixView<const std::int32_t> list_offsets = {};
  MatrixView<const std::uint16_t> list_sources = {};
  /// depth x cols, in rows that begin at multiples of 16 bytes. What is behind the last column may
  /// be anything.
  MatrixView<const std::uint8_t> b_bytes = {};
};

/// The one that the plan's output names.
struct BitOutputs {
  MatrixView<std::int32_t> sums32 = {};
  MatrixView<std::int64_t> sums64 = {};
  MatrixView<float> values = {};
  quant::BitTensorView<std::uint32_t> codes = {};
  /// rows x cols, in rows that begin at multiples of 16 bytes. Behind the last column zeros fill 16
  /// bytes up.
  MatrixView<std::uint8_t> bytes = {};
};

void run(const BitPlan& plan, const BitInputs& inputs, const BitOutputs& outputs,
         Stream stream = {}, Workspace workspace = {});

/// The sum of the codes of each row.
void bit_row_sums(quant::BitTensorView<const std::uint32_t> tensor, MatrixView<std::int64_t> sums);

}  // namespace tessera::ops
