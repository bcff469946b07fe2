// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/top_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "ops/plan/check.hpp"
#include "ops/top_rows/key.hpp"
#include "tessera/core/parallel.hpp"

#ifdef TESSERA_WITH_CUDA
#include "ops/top_rows/cuda/top_rows.hpp"
#endif

namespace tessera::ops {
namespace {

/// The best of those offered so far, as a heap whose top is the worst of them.
class Best {
 public:
  explicit Best(std::span<TopKey> sorted) : sorted_(sorted), heap_(sorted.begin(), sorted.end()) {
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  ~Best() {
    std::sort_heap(heap_.begin(), heap_.end(), std::greater<>());
    std::copy(heap_.begin(), heap_.end(), sorted_.begin());
  }
  Best(const Best&) = delete;
  Best& operator=(const Best&) = delete;

  /// A score of a later column is listed unless it is as low as this one, or lower: not a number
  /// while there is room.
  float threshold() const {
    return heap_.front() == 0 ? std::numeric_limits<float>::quiet_NaN() : score_of(heap_.front());
  }

  void offer(TopKey key) {
    if (key <= heap_.front()) return;
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.back() = key;
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

 private:
  std::span<TopKey> sorted_;
  std::vector<TopKey> heap_;
};

/// Whether some scores may be listed; also where one is not a number.
bool any_above(const float* scores, float threshold, std::int64_t count) {
  int above = 0;
  for (std::int64_t j = 0; j < count; ++j) above |= scores[j] <= threshold ? 0 : 1;
  return above != 0;
}

/// Returns whether all scores are numbers.
bool offer_row(const float* scores, std::int64_t cols, std::int64_t first_col,
               std::span<const VertexId> left_out, std::span<TopKey> keys) {
  constexpr std::int64_t at_once = 64;
  Best best(keys);
  float threshold = best.threshold();
  bool are_numbers = true;
  for (std::int64_t begin = 0; begin < cols; begin += at_once) {
    const std::int64_t end = std::min(cols, begin + at_once);
    if (!any_above(scores + begin, threshold, end - begin)) continue;
    for (std::int64_t j = begin; j < end; ++j) {
      if (scores[j] <= threshold) continue;
      are_numbers = are_numbers && !std::isnan(scores[j]);
      const auto col = static_cast<VertexId>(first_col + j);
      if (std::binary_search(left_out.begin(), left_out.end(), col)) continue;
      best.offer(top_key(scores[j], col));
      threshold = best.threshold();
    }
  }
  return are_numbers;
}

std::span<const VertexId> left_out_of(const LeftOut& left_out, std::int64_t row) {
  if (left_out.offsets == nullptr) return {};
  return {left_out.cols + left_out.offsets[row], left_out.cols + left_out.offsets[row + 1]};
}

}  // namespace

TopBlock top_block(std::int64_t rows, std::int64_t cols, std::int64_t bytes, Device device) {
  constexpr std::int64_t size = sizeof(float), fewest_rows = 128, read_at_once = 4;
  constexpr std::int64_t on_cpu = std::int64_t{32} << 20, on_gpu = std::int64_t{512} << 20;
  if (bytes == 0) bytes = device.kind == DeviceKind::cpu ? on_cpu : on_gpu;
  std::int64_t widest = 4096;
  if (device.kind != DeviceKind::cpu) widest = std::max(widest, bytes / (fewest_rows * size));
  TopBlock block;
  block.cols = std::clamp<std::int64_t>(cols, 1, widest);
  block.stride = (block.cols + read_at_once - 1) / read_at_once * read_at_once;
  block.rows =
      std::clamp<std::int64_t>(bytes / (block.stride * size), 1, std::max<std::int64_t>(1, rows));
  return block;
}

void offer_to_top(ConstOperand scores, std::int64_t first_col, const LeftOut& left_out,
                  MatrixView<TopKey> keys, std::int32_t* not_a_number, Device device,
                  Stream stream) {
  require_available(device);
  const Checker check("offer_to_top", device);
  check.matrix(scores, "scores", {ElementType::fp32, keys.rows, scores.cols});
  check.that(keys.cols > 0 && keys.device == device, "there is no room for lists",
             "give memory on the op's device");
  check.that(not_a_number != nullptr, "there is no memory for not_a_number");
  if (scores.rows == 0 || scores.cols == 0) return;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    check.that(keys.cols <= longest_top_list, "lists of " + std::to_string(keys.cols) + " on a GPU",
               "ask for " + std::to_string(longest_top_list) + " at most");
    return offer_to_top_on_gpu(scores, first_col, left_out, keys, not_a_number, device, stream);
  }
#endif
  static_cast<void>(stream);
  const auto given = scores.as<float>();
  std::vector<std::uint8_t> are_numbers(static_cast<std::size_t>(scores.rows));
  parallel_for(scores.rows, even_grain(scores.rows, 1), [&](std::int64_t i) {
    are_numbers[static_cast<std::size_t>(i)] =
        offer_row(given.row(i), given.cols, first_col, left_out_of(left_out, i),
                  {keys.row(i), static_cast<std::size_t>(keys.cols)});
  });
  if (std::ranges::find(are_numbers, 0) != are_numbers.end()) *not_a_number = 1;
}

void list_top(const TopKey* keys, std::int64_t size, VertexId* cols, float* scores, Device device,
              Stream stream) {
  require_available(device);
  if (size == 0) return;
#ifdef TESSERA_WITH_CUDA
  if (device.kind == DeviceKind::cuda) {
    return list_top_on_gpu(keys, size, cols, scores, device, stream);
  }
#endif
  static_cast<void>(stream);
  parallel_for(size, even_grain(size, 1024), [&](std::int64_t i) {
    cols[i] = col_of(keys[i]);
    scores[i] = score_of(keys[i]);
  });
}

}  // namespace tessera::ops
