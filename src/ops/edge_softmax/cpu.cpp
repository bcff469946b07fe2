// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "ops/edge_softmax/kernel.hpp"
#include "ops/edge_softmax/rows.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"

namespace tessera::ops {
namespace {

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
    this->scale_tile = this->tile + per_head;
    this->max_before = this->scale_tile + per_head;
    row_sums = this->max_before + per_head;
  }
};

/// Row by row; the pieces of a long row are measured first, then changed.
template <class T>
class SoftmaxByRows final : public PreparedEdgeSoftmax {
  using S = SumOf<T>;

 public:
  explicit SoftmaxByRows(const EdgeSoftmaxProblem& problem)
      : graph_(problem.graph),
        heads_(problem.options.heads),
        functions_(edge_softmax_rows().of<T>()),
        schedule_(make_row_schedule(graph_.num_rows(), graph_.row_offsets().data())),
        slots_(checked_area(schedule_.num_slots, 2 * heads_)) {}

  std::int64_t own_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(S));
  }

  void run_scaled(ConstOperand scores, double scale, Operand weights, Operand log_sum, Stream,
                  const WorkspaceView&) const override {
    go_over_rows(functions_.forward, scores, {}, scale, weights, log_sum);
  }

  void run_backward(ConstOperand weights, ConstOperand grad_weights, Operand grad_scores, Stream,
                    const WorkspaceView&) const override {
    go_over_rows(functions_.backward, weights, grad_weights, 1, grad_scores, {});
  }

 private:
  static softmax::Edges<const T> edges_at(const ConstOperand& operand, EdgeOffset edge) {
    return {operand.as<T>().row(edge), operand.stride};
  }

  void go_over_rows(const softmax::Pass<T>& pass, const ConstOperand& first,
                    const ConstOperand& second, double scale, const Operand& results,
                    const Operand& log_sum) const {
    const softmax::Shape<S> shape{heads_, static_cast<S>(scale)};
    const auto measure = [&](EdgeOffset begin, EdgeOffset end, S* sums, const auto& scratch) {
      pass.measure(shape, edges_at(first, begin), edges_at(second, begin), end - begin, sums,
                   scratch);
    };
    const auto apply = [&](EdgeOffset begin, EdgeOffset end, const S* sums, const auto& scratch) {
      pass.apply(shape, edges_at(first, begin), edges_at(second, begin),
                 {results.as<T>().row(begin), results.stride}, end - begin, sums, scratch);
    };
    const auto store_log_sum = [&](VertexId row, const S* sums) {
      if (log_sum.absent()) return;
      S* const to = log_sum.as<S>().row(row);
      for (std::int64_t h = 0; h < heads_; ++h) to[h] = sums[h] + std::log(sums[heads_ + h]);
    };
    const auto num_ranges = static_cast<std::int64_t>(schedule_.ranges.size());
    parallel_tasks(num_ranges, [&](std::int64_t i) {
      const RowRange& range = schedule_.ranges[static_cast<std::size_t>(i)];
      const ThreadScratch<S> scratch(heads_);
      if (range.slot >= 0) {
        measure(range.edge_begin, range.edge_end, slots_.data() + range.slot * 2 * heads_, scratch);
        return;
      }
      for (VertexId row = range.row_begin; row < range.row_end; ++row) {
        const EdgeOffset begin = graph_.row_offsets()[row], end = graph_.row_offsets()[row + 1];
        measure(begin, end, scratch.row_sums, scratch);
        store_log_sum(row, scratch.row_sums);
        apply(begin, end, scratch.row_sums, scratch);
      }
    });
    if (schedule_.long_rows.empty()) return;
    // Every piece of a long row then holds the sums of the whole row.
    for (const LongRow& row : schedule_.long_rows) {
      S* const total = slots_.data() + row.first_slot * 2 * heads_;
      for (std::int64_t i = 1; i < row.num_slots; ++i)
        pass.merge(total + i * 2 * heads_, heads_, total);
      store_log_sum(row.row, total);
      for (std::int64_t i = 1; i < row.num_slots; ++i) {
        std::copy_n(total, 2 * heads_, total + i * 2 * heads_);
      }
    }
    parallel_tasks(num_ranges, [&](std::int64_t i) {
      const RowRange& range = schedule_.ranges[static_cast<std::size_t>(i)];
      if (range.slot < 0) return;
      apply(range.edge_begin, range.edge_end, slots_.data() + range.slot * 2 * heads_,
            ThreadScratch<S>(heads_));
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
  return prepare_as<PreparedEdgeSoftmax, SoftmaxByRows>(problem.options.precision, problem);
}

}  // namespace

std::span<const EdgeSoftmaxKernel> edge_softmax_kernels() {
  static const std::vector<EdgeSoftmaxKernel> table = [] {
    std::vector<EdgeSoftmaxKernel> kernels = {
        {{"edge_softmax/cpu/rows", "each row's edges in blocks, all heads in one vector stream",
          "edge_softmax", DeviceKind::cpu, true},
         why_not_rows,
         predicted_rows_us,
         prepare_rows},
    };
#ifdef TESSERA_WITH_CUDA
    append_cuda_edge_softmax_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
