// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/in_edge_order.hpp"

#include <utility>

#include "graph/weight_functions.hpp"
#include "ops/check.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/edge_terms.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

template <class T>
class InEdgeOrder final : public PreparedSpmm {
  using S = SumOf<T>;

 public:
  InEdgeOrder(std::unique_ptr<const PreparedSpmm> by_rows, const SpmmProblem& problem)
      : by_rows_(std::move(by_rows)),
        terms_(edge_terms(problem)),
        edge_ids_(problem.graph.edge_ids()),
        values_(problem.graph.num_edges(), 1) {
    for (T& value : values_.span()) value = T(problem.edges->loop_weight());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (call.edge_values.absent()) return by_rows_->run(call, stream, workspace);
    const MatrixView<const T> given = call.edge_values.as<T>();
    visit_weight(terms_->function, [&](auto function) {
      // The numbers of a product are scales of the rows already.
      constexpr bool weighs = !std::is_same_v<decltype(function), ProductWeight>;
      parallel_for(terms_->num_edges, 1 << 14, [&](EdgeOffset k) {
        T value = given(k, 0);
        if constexpr (weighs) {
          value = T(weight_of(*terms_, function, static_cast<S>(value), terms_->rows[k],
                              terms_->cols[k]));
        }
        values_(edge_ids_[k], 0) = value;
      });
    });
    SpmmCall moved = call;
    moved.edge_values = values_;
    by_rows_->run(moved, stream, workspace);
  }

  std::int64_t own_bytes() const noexcept override {
    return by_rows_->own_bytes() + values_.size() * static_cast<std::int64_t>(sizeof(T));
  }

 private:
  std::unique_ptr<const PreparedSpmm> by_rows_;
  std::shared_ptr<const EdgeTerms> terms_;
  SharedArray<EdgeOffset> edge_ids_;
  mutable Matrix<T> values_;
};

}  // namespace

std::unique_ptr<const PreparedSpmm> in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                  const SpmmProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.device.kind == DeviceKind::cuda) {
    return cuda_in_edge_order(std::move(by_rows), problem);
  }
#endif
  return visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<InEdgeOrder<T>>(std::move(by_rows), problem);
  });
}

}  // namespace tessera::ops
