// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/trial_operands.hpp"

#include <algorithm>
#include <cstring>

#include "tessera/core/random.hpp"

namespace tessera::ops {
namespace {

template <class T>
void draw(std::byte* to, std::int64_t count) {
  const Random random(1);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<T>(
        static_cast<float>(0.5 + 0.5 * random.uniform(static_cast<std::uint64_t>(i))));
    std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &number, sizeof(T));
  }
}

std::vector<std::byte> drawn(Precision precision, std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * bytes_per_element(precision));
  switch (precision) {
    case Precision::fp64: draw<double>(bytes.data(), count); break;
    case Precision::bf16: draw<Bfloat16>(bytes.data(), count); break;
    case Precision::fp16: draw<Float16>(bytes.data(), count); break;
    case Precision::fp32:
    case Precision::tf32: draw<float>(bytes.data(), count); break;
  }
  return bytes;
}

}  // namespace

std::byte* TrialOperands::add_bytes(std::size_t bytes) {
  return memory_.emplace_back(static_cast<std::int64_t>(bytes), place_).data();
}

Operand TrialOperands::matrix(Precision precision, std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t drawn_elements = 1 << 16;
  const std::int64_t elements = checked_area(rows, cols);
  const std::size_t bytes = checked_bytes(elements, bytes_per_element(precision));
  std::byte* const memory = add_bytes(bytes);
  const std::vector<std::byte> start = drawn(precision, std::min(elements, drawn_elements));
  copy_bytes(memory, start.data(), start.size(), place_.device, place_.stream);
  // What is there is copied behind itself, twice as much each time.
  for (std::size_t done = start.size(); done < bytes; done *= 2) {
    copy_bytes(memory + done, memory, std::min(done, bytes - done), place_.device, place_.stream);
  }
  return {memory, storage_of(precision), place_.device, rows, cols};
}

}  // namespace tessera::ops
