// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include "ops/bits/check_run.hpp"
#include "ops/bits/finish_many.hpp"
#include "ops/bits/loops.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/detail/ops/bit_chain.hpp"
#include "tessera/detail/ops/plan_only.hpp"
#ifdef TESSERA_WITH_CUDA
#include "ops/bits/cuda/chain/launch.hpp"
#endif

/// A worker takes one part of a batch after another through all steps: its codes are bytes that
/// stay in the nearest cache, sums follow the bits of the adjacency, and zeros are skipped.
namespace tessera::ops {
namespace {

constexpr std::int64_t part_rows = chain_part_rows;
constexpr std::int64_t part_words = part_rows / 32;
constexpr std::int64_t most_width = 1024;
constexpr std::int64_t most_workers = 64;

std::int64_t padded(std::int64_t count) { return (count + 15) / 16 * 16; }

std::vector<float> filled(const MatrixView<const float>& numbers, std::int64_t row,
                          std::int64_t cols, float absent) {
  std::vector<float> result(static_cast<std::size_t>(cols), absent);
  if (numbers.data != nullptr) std::copy_n(numbers.row(row), cols, result.data());
  return result;
}

/// What is the same for all rows.
struct Step {
  Step(const BitChainStep& given, bool fours)
      : aggregates(given.aggregates),
        in(given.in),
        out(given.out),
        scales_result(given.scales_result),
        numbers{filled(given.columns.col_scale, 0, given.out, 1),
                filled(given.columns.bias, 0, given.out, 0),
                filled(given.columns.col_terms, 0, given.out, 0),
                given.terms > 1 ? filled(given.columns.col_terms, 1, given.out, 0)
                                : std::vector<float>(),
                filled(given.columns.norm_scale, 0, given.out, 1),
                filled(given.columns.norm_shift, 0, given.out, 0)} {
    row.col_scale = numbers[0].data();
    row.bias = numbers[1].data();
    row.col_terms[0] = numbers[2].data();
    row.col_terms[1] = numbers[3].data();
    const bool norms =
        given.columns.norm_scale.data != nullptr || given.columns.norm_shift.data != nullptr;
    row.norm_scale = norms ? numbers[4].data() : nullptr;
    row.norm_shift = numbers[5].data();
    row.terms = given.terms;
    row.relu = given.activation == BitActivation::relu;
    if (given.requantise) take(*given.requantise);
    if (!aggregates) take(given.weights, fours);
  }
  Step(Step&&) = default;

  void take(const quant::Affine& range) {
    for (std::int64_t j = 0; j < out; ++j) {
      lower.push_back(range.lower[range.range_of(0, j)]);
      step.push_back(range.scale[range.range_of(0, j)]);
    }
    row.lower = lower.data();
    row.step = step.data();
    inverse = inverses_of(step);
    row.inverse = inverse.empty() ? nullptr : inverse.data();
    row.floors = range.rounding == quant::Rounding::floor;
    row.last_code = static_cast<float>(range.max_code());
  }
  void take(const quant::BitTensor& tensor, bool fours) {
    const Matrix<std::uint16_t> codes = quant::unpack(tensor);
    const std::int64_t stride = padded(out);
    if (fours) bytes.resize(static_cast<std::size_t>((in + 3) / 4 * 4 * stride));
    if (!fours) weights.resize(static_cast<std::size_t>(in * stride));
    for (std::int64_t k = 0; k < in; ++k) {
      for (std::int64_t j = 0; j < out; ++j) {
        if (fours) {
          bytes[static_cast<std::size_t>((k / 4 * stride + j) * 4 + k % 4)] =
              static_cast<std::uint8_t>(codes(j, k));
        } else {
          weights[static_cast<std::size_t>(k * stride + j)] =
              static_cast<std::int16_t>(codes(j, k));
        }
      }
    }
  }

  bool aggregates;
  std::int64_t in, out;
  bool scales_result;
  std::vector<float> numbers[6];
  std::vector<float> lower, step, inverse;
  std::vector<std::int16_t> weights;  ///< in rows of `out`, filled up
  std::vector<std::uint8_t> bytes;    ///< in their place where the CPU multiplies four at once
  bits::ChainRow row;
};

bool fits(const BitChainProblem& problem) {
  return !problem.lists && chain_fits(problem, most_width) &&
         std::all_of(problem.steps.begin(), problem.steps.end(), [](const BitChainStep& step) {
           return step.activation != BitActivation::tanh;
         });
}

class CpuBitChain final : public BitChain {
 public:
  explicit CpuBitChain(const BitChainProblem& problem)
      : check_(problem), vertices_(problem.vertices), loops_(bit_loops()) {
    std::int64_t widest = problem.steps.front().in;
    for (const BitChainStep& step : problem.steps) {
      steps_.emplace_back(step, loops_.multiply_fours != nullptr);
      widest = std::max(widest, step.out);
    }
    // Spreading makes whole words.
    stride_ = (widest + 31) / 32 * 32;
    const std::int64_t workers = std::min(vertices_ / part_rows, most_workers);
    for (std::int64_t i = 0; i < workers; ++i) rooms_.emplace_back(stride_);
  }

  void run(const BitChainInputs& inputs, MatrixView<float> values, Stream) const override {
    check_(inputs, values);
    if (plans_only()) return;
    const std::int64_t parts = vertices_ / part_rows;
    const auto workers = static_cast<std::int64_t>(rooms_.size());
    parallel_tasks(workers, [&](std::int64_t worker) {
      Room& room = rooms_[static_cast<std::size_t>(worker)];
      for (std::int64_t part = worker; part < parts; part += workers) {
        run_part(inputs, part * part_rows, room, values);
      }
    });
  }

  std::string name() const override { return "bit_chain/cpu/parts"; }
  std::int64_t weight_bytes() const override {
    std::int64_t bytes = 0;
    for (const Step& step : steps_) {
      bytes += std::ssize(step.weights) * 2 + std::ssize(step.bytes) + step.out * 4 * 8;
    }
    return bytes;
  }
  std::int64_t activation_bytes() const override {
    return std::ssize(rooms_) * 2 * part_rows * stride_;
  }

 private:
  /// What a worker needs for a part.
  struct Room {
    explicit Room(std::int64_t stride)
        : codes{Buffer<std::uint8_t>(part_rows * stride), Buffer<std::uint8_t>(part_rows * stride)},
          sums(stride),
          values(stride) {}

    Buffer<std::uint8_t> codes[2];
    Buffer<std::int32_t> sums;
    Buffer<float> values;
  };

  /// Features as bytes, a row for each vertex.
  void load_features(const BitChainInputs& inputs, std::int64_t first, Room& room) const {
    const auto& from = inputs.features;
    std::uint8_t* const codes = room.codes[0].data();
    if (!steps_.front().aggregates) {
      for (std::int64_t i = 0; i < part_rows; ++i) {
        loops_.spread(from.row(0, first + i), from.plane_words(), from.bits, from.words_per_row,
                      codes + i * stride_);
      }
      return;
    }
    std::uint8_t column[part_rows];
    for (std::int64_t j = 0; j < steps_.front().in; ++j) {
      loops_.spread(from.row(0, j) + first / 32, from.plane_words(), from.bits, part_words, column);
      for (std::int64_t i = 0; i < part_rows; ++i) codes[i * stride_ + j] = column[i];
    }
  }

  void run_part(const BitChainInputs& inputs, std::int64_t first, Room& room,
                MatrixView<float> values) const {
    load_features(inputs, first, room);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      run_step(steps_[i], inputs, first, room.codes[i % 2].data(), room.codes[(i + 1) % 2].data(),
               room, i + 1 == steps_.size() ? values : MatrixView<float>());
    }
  }

  void run_step(const Step& step, const BitChainInputs& inputs, std::int64_t first,
                const std::uint8_t* from, std::uint8_t* to, Room& room,
                const MatrixView<float>& last) const {
    bits::ChainRow row = step.row;
    row.scales_result = step.scales_result && inputs.col_scale != nullptr;
    std::int32_t* const sums = room.sums.data();
    for (std::int64_t i = 0; i < part_rows; ++i) {
      const std::int64_t vertex = first + i;
      if (step.aggregates) {
        loops_.sum_rows(inputs.adjacency.row(0, vertex), inputs.adjacency.words_per_row, from,
                        stride_, step.out, sums);
        row.scale = inputs.row_scale == nullptr ? 1.0f : inputs.row_scale[vertex];
        if (row.terms > 0) row.row_terms[0] = inputs.row_weights[vertex];
      } else {
        const std::uint8_t* const own = from + i * stride_;
        const std::int32_t sum = loops_.multiply_fours != nullptr
                                     ? loops_.multiply_fours(own, step.in, step.bytes.data(),
                                                             padded(step.out), step.out, sums)
                                     : loops_.multiply(own, step.in, step.weights.data(),
                                                       padded(step.out), step.out, sums);
        row.row_terms[0] = static_cast<float>(sum);
        row.row_terms[1] = 1;
      }
      if (row.scales_result) row.result_scale = inputs.col_scale[vertex];
      float* const numbers = last.data == nullptr ? room.values.data() : last.row(vertex);
      loops_.finish_values(row, sums, step.out, numbers);
      if (last.data == nullptr) {
        loops_.finish_codes(row, numbers, step.out, to + i * stride_);
      }
    }
  }

  ChainCheck check_;
  std::int64_t vertices_;
  std::vector<Step> steps_;
  std::int64_t stride_ = 0;  ///< of the codes of a vertex
  const bits::Table& loops_;
  mutable std::vector<Room> rooms_;  ///< one run at a time
};

}  // namespace

std::unique_ptr<const BitChain> make_bit_chain(const BitChainProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.options.device.kind == DeviceKind::cuda) return make_cuda_bit_chain(problem);
#endif
  if (!fits(problem)) return nullptr;
  return std::make_unique<CpuBitChain>(problem);
}

}  // namespace tessera::ops
