// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tessera/core/parallel.hpp"

#include "ops/messages/kernel.hpp"
#include "ops/messages/rows.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"

namespace tessera::ops {
namespace {

template <class T>
MessageMatrix<const T> reading(const ConstOperand& operand) {
  return {static_cast<const T*>(operand.data), operand.stride};
}
template <class T>
MessageMatrix<T> writing(const Operand& operand) {
  return {static_cast<T*>(operand.data), operand.stride};
}

/// Forward row by row. Backward column by column, so that both gradients come of one pass over the
/// edges, and every sum is that of one thread.
template <class T>
class MessagesByRows final : public PreparedMessages {
 public:
  explicit MessagesByRows(const MessagesProblem& problem)
      : graph_(problem.graph),
        features_(problem.options.features),
        forward_(message_rows().of<T>().forward[static_cast<std::size_t>(problem.options.message)]),
        backward_(
            message_rows().of<T>().backward[static_cast<std::size_t>(problem.options.message)]),
        by_target_(make_row_schedule(graph_.num_rows(), graph_.row_offsets().data())) {
    if (problem.options.backward) {
      csc_ = graph_.csc();
      by_source_ = make_row_schedule(graph_.num_cols(), csc_.col_offsets.data());
    }
    slots_ = Buffer<double>(
        checked_area(std::max(by_target_.num_slots, by_source_.num_slots), features_));
  }

  std::int64_t own_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(double));
  }

  void run(const MessagesInputs& inputs, Operand y, Stream, const WorkspaceView&) const override {
    MessageRows<T> rows = rows_of(inputs);
    rows.offsets = graph_.row_offsets().data();
    rows.others = graph_.col_indices().data();
    rows.sums = writing<T>(y);
    go_over(by_target_, forward_, rows);
  }

  void run_backward(const MessagesInputs& inputs, ConstOperand grad_y,
                    const MessagesGradOutputs& gradients, Stream,
                    const WorkspaceView&) const override {
    MessageRows<T> rows = rows_of(inputs);
    rows.offsets = csc_.col_offsets.data();
    rows.others = csc_.row_indices.data();
    rows.positions = csc_.csr_positions.data();
    rows.grad_y = reading<T>(grad_y);
    rows.sums = writing<T>(gradients.x);
    rows.grad_edges = writing<T>(gradients.edge_features);
    go_over(by_source_, backward_, rows);
  }

 private:
  MessageRows<T> rows_of(const MessagesInputs& inputs) const {
    MessageRows<T> rows;
    rows.num_edges = graph_.num_edges();
    rows.edge_rows = inputs.edge_rows;
    rows.x = reading<T>(inputs.x);
    rows.edges = reading<T>(inputs.edge_features);
    rows.slots = slots_.data();
    rows.slot_stride = features_;
    return rows;
  }

  void go_over(const RowSchedule& schedule, typename MessageFunctions<T>::Function function,
               const MessageRows<T>& rows) const {
    if (features_ == 0) return;
    const auto num_ranges = std::ssize(schedule.ranges);
    const auto one = [&](std::int64_t i) {
      function(rows, schedule.ranges[static_cast<std::size_t>(i)], features_);
    };
    if (rows.num_edges * features_ < min_parallel_work) {
      for (std::int64_t i = 0; i < num_ranges; ++i) one(i);
    } else {
      parallel_tasks(num_ranges, one);
    }
    if (rows.sums.data == nullptr) return;
    for (const LongRow& row : schedule.long_rows) join(row, rows);
  }

  void join(const LongRow& row, const MessageRows<T>& rows) const {
    const double* const slots = rows.slots + row.first_slot * rows.slot_stride;
    T* const out = rows.sums.data + row.row * rows.sums.stride;
    for (std::int64_t f = 0; f < features_; ++f) {
      double sum = 0;
      for (std::int64_t slot = 0; slot < row.num_slots; ++slot) {
        sum += slots[slot * rows.slot_stride + f];
      }
      out[f] = static_cast<T>(static_cast<SumOf<T>>(sum));
    }
  }

  Graph graph_;
  Csc csc_;
  std::int64_t features_;
  typename MessageFunctions<T>::Function forward_, backward_;
  RowSchedule by_target_, by_source_;
  mutable Buffer<double> slots_;
};

std::string why_not_rows(const MessagesProblem& problem) {
  return why_not_cpu_precision(problem.options.precision);
}

/// About half a nanosecond for each number on one core.
double predicted_rows_us(const MessagesProblem& problem) {
  const std::int64_t numbers = problem.graph.num_edges() * problem.options.features;
  return static_cast<double>(numbers) * 5e-4 / num_threads();
}

std::unique_ptr<const PreparedMessages> prepare_rows(const MessagesProblem& problem) {
  return prepare_as<PreparedMessages, MessagesByRows>(problem.options.precision, problem);
}

}  // namespace

std::span<const MessagesKernel> messages_kernels() {
  static const std::vector<MessagesKernel> table = [] {
    std::vector<MessagesKernel> kernels = {
        {{"messages/cpu/rows", "row by row; both gradients in one pass, column by column",
          "messages", DeviceKind::cpu, true},
         why_not_rows,
         predicted_rows_us,
         prepare_rows},
    };
#ifdef TESSERA_WITH_CUDA
    append_cuda_messages_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
