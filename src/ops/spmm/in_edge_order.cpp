// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/edge_terms.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "graph/weight_functions.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/scales.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

template <class T>
void move_values(const EdgeTerms& terms, const SharedArray<EdgeOffset>& edge_ids,
                 const ConstOperand& edge_values, T* moved) {
  using S = SumOf<T>;
  const MatrixView<const T> given = edge_values.as<T>();
  visit_weight(terms.function, [&](auto function) {
    // The numbers of a product are scales of the rows already.
    constexpr bool weighs = !std::is_same_v<decltype(function), ProductWeight>;
    parallel_for(terms.num_edges, 1 << 14, [&](EdgeOffset k) {
      T value = given(k, 0);
      if constexpr (weighs) {
        value = T(weight_of(terms, function, static_cast<S>(value), terms.rows[k], terms.cols[k]));
      }
      moved[edge_ids[k]] = value;
    });
  });
}

MoveValues values_mover(const SpmmProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.device.kind == DeviceKind::cuda) return cuda_move_values(problem);
#endif
  return visit_precision(problem.precision, [&]<class T>() -> MoveValues {
    return [terms = edge_terms(problem), edge_ids = problem.graph.edge_ids(),
            num_moved = problem.graph.num_edges(), loop = T(problem.edges->loop_weight())](
               const ConstOperand& edge_values, void* moved, Stream) {
      T* const values = static_cast<T*>(moved);
      if (num_moved > terms->num_edges) std::fill_n(values, num_moved, loop);
      move_values(*terms, edge_ids, edge_values, values);
    };
  });
}

class InEdgeOrder final : public PreparedSpmm {
 public:
  InEdgeOrder(std::unique_ptr<const PreparedSpmm> by_rows, const SpmmProblem& problem)
      : by_rows_(std::move(by_rows)),
        move_(values_mover(problem)),
        values_(nullptr, storage_of(problem.precision), problem.device, problem.graph.num_edges(),
                1),
        moved_(workspace_.add<std::byte>(bytes_of(values_.type, values_.rows))),
        inner_(workspace_.add_for({by_rows_->workspace()})) {}

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    SpmmCall in_rows = call;
    if (!call.edge_values.absent()) {
      in_rows.edge_values = values_;
      in_rows.edge_values.data = moved_.in(workspace);
      move_(call.edge_values, moved_.in(workspace), stream);
    }
    by_rows_->run(in_rows, stream, part_for(inner_, workspace));
  }

  std::int64_t own_bytes() const noexcept override { return by_rows_->own_bytes(); }

 private:
  std::unique_ptr<const PreparedSpmm> by_rows_;
  MoveValues move_;
  Operand values_;  ///< as rows have them, without memory
  WorkspacePart<std::byte> moved_;
  WorkspacePart<std::byte> inner_;
};

}  // namespace

std::unique_ptr<const PreparedSpmm> in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                  const SpmmProblem& problem) {
  return std::make_unique<InEdgeOrder>(std::move(by_rows), problem);
}

}  // namespace tessera::ops
