// SPDX-License-Identifier: Apache-2.0
// The best candidates of every query, by blocks of products.
#include <algorithm>

#include "dense.hpp"
#include "operators.hpp"
#include "tessera/ops/top_rows.hpp"

namespace tessera::torch_ops {
namespace {

/// Candidates (-1 where there are no more), their scores (-infinity there), and a number that is
/// not 0 where a score is none. `left_out` has candidates by query, those of query i from
/// `offsets[i]` up to `offsets[i + 1]` in their order.
std::vector<Tensor> top_lists(Tensor queries, Tensor candidates, std::optional<Tensor> offsets,
                              std::optional<Tensor> left_out, std::int64_t count,
                              std::int64_t block_bytes) {
  const DeviceScope scope(queries);
  check_device(queries, candidates, "candidates");
  queries = with_rows(queries);
  candidates = with_rows(candidates);
  const Place place = place_of(queries);
  const Dense dense(queries, 0);
  const auto all = queries.size(0), others = candidates.size(0);
  const ops::TopBlock block = ops::top_block(all, others, block_bytes, place.device);
  const Tensor products = empty_beside(queries, block.rows, block.stride, ScalarType::Float);
  Tensor keys = zeros_beside(queries, all, count, ScalarType::Long);
  Tensor problem = zeros_beside(queries, 1, 1, ScalarType::Int);
  auto* const lists = static_cast<ops::TopKey*>(keys.mutable_data_ptr());
  for (std::int64_t first = 0; first < all; first += block.rows) {
    const std::int64_t rows = std::min(block.rows, all - first);
    const Tensor asked = rows_of(queries, first, rows);
    ops::LeftOut known;
    if (offsets && left_out) {
      known = {static_cast<const EdgeOffset*>(offsets->const_data_ptr()) + first,
               static_cast<const VertexId*>(left_out->const_data_ptr())};
    }
    for (std::int64_t begin = 0; begin < others; begin += block.cols) {
      const std::int64_t cols = std::min(block.cols, others - begin);
      Tensor scores = view_of(products, {rows, cols}, {block.stride, 1}, 0);
      dense.multiply(scores, asked, transposed(rows_of(candidates, begin, cols)));
      ops::offer_to_top(
          operand(scores), begin, known, {lists + first * count, rows, count, place.device},
          static_cast<std::int32_t*>(problem.mutable_data_ptr()), place.device, place.stream);
    }
  }
  Tensor ids = empty_beside(queries, all, count, ScalarType::Int);
  Tensor scores = empty_beside(queries, all, count, ScalarType::Float);
  ops::list_top(lists, keys.numel(), static_cast<VertexId*>(ids.mutable_data_ptr()),
                static_cast<float*>(scores.mutable_data_ptr()), place.device, place.stream);
  return {in_type(ids, ScalarType::Long), scores, problem};
}

}  // namespace

void register_top(torch::stable::detail::StableLibrary& library) {
  library.impl("top_lists", TORCH_BOX(&Guarded<&top_lists>::run));
}

}  // namespace tessera::torch_ops
