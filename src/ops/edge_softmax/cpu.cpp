// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "ops/check.hpp"
#include "ops/edge_softmax/kernel.hpp"
#include "ops/edge_softmax/rows.hpp"
#include "ops/row_schedule.hpp"

namespace tessera::ops {
namespace {

template <class T>
const softmax::Functions<T>& functions_for() {
  const softmax::Table& table = edge_softmax_rows();
  if constexpr (std::is_same_v<T, double>) return table.fp64;
  if constexpr (std::is_same_v<T, float>) return table.fp32;
  if constexpr (std::is_same_v<T, Bfloat16>) return table.bf16;
}

/// Memory that each thread keeps between runs, and the sums of a row.
template <class S>
struct ThreadScratch : softmax::Scratch<S> {
  S* row_sums;

  explicit ThreadScratch(std::int64_t heads) {
    const std::int64_t block = std::max(softmax::block_numbers, heads) + softmax::scratch_slack<S>;
    const std::int64_t per_head = heads + softmax::scratch_slack<S>;
    static thread_local Buffer<S> memory;
    const std::int64_t size = 2 * block + 5 * per_head;
    if (memory.size() < size) memory = Buffer<S>(size);
    this->first = memory.data();
    this->second = this->first + block;
    this->tile = this->second + block;
    this->head_numbers = this->tile + per_head;
    this->sums = this->head_numbers + per_head;
    row_sums = this->sums + per_head;
  }
};

/// Row by row; the pieces of a long row are measured first, then changed.
template <class T>
class SoftmaxByRows final : public PreparedEdgeSoftmax {
  using S = softmax::SumOf<T>;

 public:
  explicit SoftmaxByRows(const EdgeSoftmaxProblem& problem)
      : graph_(problem.graph),
        heads_(problem.options.heads),
        functions_(functions_for<T>()),
        schedule_(make_row_schedule(graph_.num_rows(), graph_.row_offsets().data())),
        slots_(checked_area(schedule_.num_slots, 2 * heads_)) {}

  std::int64_t own_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(S));
  }

  void run(ConstOperand scores, Operand weights, Stream, const WorkspaceView&) const override {
    const auto from = [&](EdgeOffset edge) { return edges_at<const T>(scores, edge); };
    const auto to = [&](EdgeOffset edge) {
      return softmax::Edges<T>{weights.as<T>().row(edge), weights.stride};
    };
    for_rows(
        [&](EdgeOffset edge, std::int64_t count, S* sums, const ThreadScratch<S>& scratch) {
          functions_.measure(from(edge), count, heads_, sums, scratch);
        },
        [&](EdgeOffset edge, std::int64_t count, const S* sums, const ThreadScratch<S>& scratch) {
          functions_.apply(from(edge), to(edge), count, heads_, sums, scratch);
        },
        [&](const S* piece, S* sums) { functions_.merge(piece, heads_, sums); });
  }

  void run_backward(ConstOperand weights, ConstOperand grad_weights, Operand grad_scores, Stream,
                    const WorkspaceView&) const override {
    const auto p = [&](EdgeOffset edge) { return edges_at<const T>(weights, edge); };
    const auto grad = [&](EdgeOffset edge) { return edges_at<const T>(grad_weights, edge); };
    const auto to = [&](EdgeOffset edge) {
      return softmax::Edges<T>{grad_scores.as<T>().row(edge), grad_scores.stride};
    };
    for_rows(
        [&](EdgeOffset edge, std::int64_t count, S* sums, const ThreadScratch<S>& scratch) {
          functions_.measure_backward(p(edge), grad(edge), count, heads_, sums, scratch);
        },
        [&](EdgeOffset edge, std::int64_t count, const S* sums, const ThreadScratch<S>& scratch) {
          functions_.apply_backward(p(edge), grad(edge), to(edge), count, heads_, sums, scratch);
        },
        [&](const S* piece, S* sums) {
          for (std::int64_t i = 0; i < 2 * heads_; ++i) sums[i] += piece[i];
        });
  }

 private:
  template <class Element>
  static softmax::Edges<Element> edges_at(const ConstOperand& operand, EdgeOffset edge) {
    return {operand.as<T>().row(edge), operand.stride};
  }

  template <class Measure, class Apply, class Merge>
  void for_rows(Measure&& measure, Apply&& apply, Merge&& merge) const {
    const auto num_ranges = static_cast<std::int64_t>(schedule_.ranges.size());
    parallel_tasks(num_ranges, [&](std::int64_t i) {
      const RowRange& range = schedule_.ranges[static_cast<std::size_t>(i)];
      const ThreadScratch<S> scratch(heads_);
      if (range.slot >= 0) {
        measure(range.edge_begin, range.edge_end - range.edge_begin,
                slots_.data() + range.slot * 2 * heads_, scratch);
        return;
      }
      for (VertexId row = range.row_begin; row < range.row_end; ++row) {
        measure(graph_.row_offsets()[row], graph_.degree(row), scratch.row_sums, scratch);
        apply(graph_.row_offsets()[row], graph_.degree(row), scratch.row_sums, scratch);
      }
    });
    if (schedule_.long_rows.empty()) return;
    // Every piece of a long row then holds the sums of the whole row.
    for (const LongRow& row : schedule_.long_rows) {
      S* const total = slots_.data() + row.first_slot * 2 * heads_;
      for (std::int64_t i = 1; i < row.num_slots; ++i) merge(total + i * 2 * heads_, total);
      for (std::int64_t i = 1; i < row.num_slots; ++i) {
        std::copy_n(total, 2 * heads_, total + i * 2 * heads_);
      }
    }
    parallel_tasks(num_ranges, [&](std::int64_t i) {
      const RowRange& range = schedule_.ranges[static_cast<std::size_t>(i)];
      if (range.slot < 0) return;
      apply(range.edge_begin, range.edge_end - range.edge_begin,
            slots_.data() + range.slot * 2 * heads_, ThreadScratch<S>(heads_));
    });
  }

  Graph graph_;
  std::int64_t heads_;
  const softmax::Functions<T>& functions_;
  RowSchedule schedule_;
  mutable Buffer<S> slots_;
};

std::string why_not_rows(const EdgeSoftmaxProblem& problem) {
  return why_not_cpu_precision(problem.options.precision);
}

/// About two nanoseconds for each number on one core.
double predicted_rows_us(const EdgeSoftmaxProblem& problem) {
  const std::int64_t numbers = problem.graph.num_edges() * problem.options.heads;
  return static_cast<double>(numbers) * 2e-3 / num_threads();
}

std::unique_ptr<const PreparedEdgeSoftmax> prepare_rows(const EdgeSoftmaxProblem& problem) {
  return visit_precision(problem.options.precision,
                         [&]<class T>() -> std::unique_ptr<const PreparedEdgeSoftmax> {
                           return std::make_unique<SoftmaxByRows<T>>(problem);
                         });
}

}  // namespace

std::span<const EdgeSoftmaxKernel> cpu_edge_softmax_kernels() {
  static const std::array<EdgeSoftmaxKernel, 1> table = {{
      {{"edge_softmax/cpu/rows", "each row's edges in blocks, all heads in one vector stream",
        "edge_softmax", DeviceKind::cpu, true},
       why_not_rows,
       predicted_rows_us,
       prepare_rows},
  }};
  return table;
}

}  // namespace tessera::ops
