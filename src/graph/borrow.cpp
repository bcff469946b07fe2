// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/borrow.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "graph/device_build.hpp"
#include "graph/narrow_indices.hpp"

namespace tessera {
namespace {

[[noreturn]] void refuse(const std::string& problem, const std::string& fix = {}) {
  throw Error(ErrorCode::invalid_argument, problem, "borrow_csr", fix);
}

void check_sizes(VertexId num_rows, VertexId num_cols, const BorrowedCsr& csr) {
  if (num_rows < 0 || num_cols < 0) {
    refuse(fmt::format("negative shape {} x {}", num_rows, num_cols));
  }
  if (csr.row_offsets.size() != std::int64_t{num_rows} + 1) {
    refuse(fmt::format("row_offsets has {} entries for {} rows", csr.row_offsets.size(), num_rows),
           "give one more than there are rows");
  }
  if (!csr.values.empty() && std::ssize(csr.values) != csr.col_indices.size()) {
    refuse(fmt::format("{} values for {} edges", csr.values.size(), csr.col_indices.size()),
           "give one value per edge, or none");
  }
}

}  // namespace

namespace detail {

SharedArray<EdgeOffset> checked_offsets(SharedArray<EdgeOffset> offsets, EdgeOffset num_edges) {
  if (offsets[0] != 0) {
    refuse(fmt::format("row_offsets start at {}, not at 0", offsets[0]),
           "borrow the whole matrix, or copy the rows");
  }
  if (offsets.back() != num_edges) {
    refuse(
        fmt::format("row_offsets end at {}, but there are {} columns", offsets.back(), num_edges));
  }
  return offsets;
}

}  // namespace detail

Graph borrow_csr(VertexId num_rows, VertexId num_cols, const BorrowedCsr& csr,
                 const BorrowOptions& options) {
  require_available(options.device);
  check_sizes(num_rows, num_cols, csr);
  if (options.device.kind != DeviceKind::cpu) {
    return detail::borrow_on_device(num_rows, num_cols, csr, options);
  }
  SharedArray<EdgeOffset> offsets;
  if (csr.row_offsets.is_wide()) {
    offsets = {csr.owner, csr.row_offsets.wide().data(), csr.row_offsets.size()};
  } else {
    const auto narrow = csr.row_offsets.narrow();
    offsets = std::vector<EdgeOffset>(narrow.begin(), narrow.end());
  }
  offsets = detail::checked_offsets(std::move(offsets), csr.col_indices.size());
  SharedArray<VertexId> cols =
      csr.col_indices.is_wide()
          ? detail::narrowed(csr.col_indices, num_cols, "column", options.place())
          : SharedArray<VertexId>(csr.owner, csr.col_indices.narrow().data(),
                                  csr.col_indices.size());
  const SharedArray<float> values(csr.owner, csr.values.data(), std::ssize(csr.values));
  const Graph graph(num_rows, num_cols, std::move(offsets), std::move(cols), values);
  if (options.row_order == RowOrder::checked) graph.validate();
  return graph;
}

}  // namespace tessera
