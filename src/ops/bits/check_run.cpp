// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/check_run.hpp"

#include <fmt/format.h>

#include "ops/bits/kernel.hpp"

namespace tessera::ops {
namespace {

void check_part(const Checker& check, const MatrixView<const float>& part, const char* name,
                std::int64_t rows, std::int64_t cols, bool required) {
  if (part.data == nullptr) {
    if (required && rows > 0 && cols > 0) {
      check.fail(fmt::format("{} is absent", name), "give it, or plan with fewer terms");
    }
    return;
  }
  check.matrix(part, name, {ElementType::fp32, rows, cols});
}

template <class T>
void check_sums(const Checker& check, const MatrixView<T>& sums, const char* name, Device device,
                const BitOptions& options) {
  if (sums.device != device) {
    check.fail(fmt::format("{} lies on {}", name, to_string(sums.device)),
               fmt::format("the plan is for {}", to_string(device)));
  }
  if (sums.rows != options.rows || sums.cols != options.cols) {
    check.fail(fmt::format("{} is {} x {}, expected {} x {}", name, sums.rows, sums.cols,
                           options.rows, options.cols));
  }
  if (sums.rows > 1 && sums.stride < sums.cols) {
    check.fail(fmt::format("the rows of {} overlap", name));
  }
  if (sums.data == nullptr && sums.rows > 0 && sums.cols > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
}

}  // namespace

void check_tensor(const Checker& check, const quant::BitTensorView<const std::uint32_t>& tensor,
                  const char* name, Device device, int bits, std::int64_t rows, std::int64_t depth,
                  std::int64_t words) {
  if (tensor.device != device) {
    check.fail(fmt::format("{} lies on {}", name, to_string(tensor.device)),
               fmt::format("the plan is for {}", to_string(device)));
  }
  if (tensor.bits != bits || tensor.rows != rows || tensor.depth != depth) {
    check.fail(fmt::format("{} has {} bits and {} x {} codes, expected {} bits and {} x {}", name,
                           tensor.bits, tensor.rows, tensor.depth, bits, rows, depth));
  }
  quant::BitTensor expected = quant::bit_tensor_shape(bits, rows, depth);
  if (words > 0) expected.words_per_row = words;
  if (tensor.padded_rows != expected.padded_rows ||
      tensor.words_per_row != expected.words_per_row) {
    check.fail(fmt::format("{} is filled up to {} rows of {} words, expected {} of {}", name,
                           tensor.padded_rows, tensor.words_per_row, expected.padded_rows,
                           expected.words_per_row));
  }
  if (tensor.words == nullptr && expected.padded_rows > 0 && expected.words_per_row > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
  if (reinterpret_cast<std::uintptr_t>(tensor.words) % 16 != 0) {
    check.fail(fmt::format("{} does not begin at a multiple of 16 bytes", name));
  }
}

void check_bytes(const Checker& check, const MatrixView<const std::uint8_t>& bytes,
                 const char* name, Device device, std::int64_t rows, std::int64_t cols) {
  if (bytes.device != device) {
    check.fail(fmt::format("{} lies on {}", name, to_string(bytes.device)),
               fmt::format("the plan is for {}", to_string(device)));
  }
  if (bytes.rows != rows || bytes.cols != cols) {
    check.fail(
        fmt::format("{} is {} x {}, expected {} x {}", name, bytes.rows, bytes.cols, rows, cols));
  }
  if (bytes.data == nullptr && rows > 0 && cols > 0) {
    check.fail(fmt::format("{} has no memory", name));
  }
  if (bytes.stride % 16 != 0 || bytes.stride < cols ||
      reinterpret_cast<std::uintptr_t>(bytes.data) % 16 != 0) {
    check.fail(fmt::format("rows of {} do not begin at multiples of 16 bytes", name));
  }
}

void check_epilogue(const Checker& check, const BitOptions& options, const BitEpilogue& parts) {
  check_part(check, parts.row_scale, "row_scale", options.rows, 1, false);
  check_part(check, parts.col_scale, "col_scale", 1, options.cols, false);
  if (options.terms_of_a) {
    check.that(parts.row_terms.data == nullptr, "row_terms come with the run, but A gives them",
               "leave them out");
  } else {
    check_part(check, parts.row_terms, "row_terms", options.rows, options.terms, options.terms > 0);
  }
  check_part(check, parts.col_terms, "col_terms", options.terms, options.cols, options.terms > 0);
  check_part(check, parts.bias, "bias", 1, options.cols, false);
  check_part(check, parts.norm_scale, "norm_scale", 1, options.cols, false);
  check_part(check, parts.norm_shift, "norm_shift", 1, options.cols, false);
  check_part(check, parts.result_scale, "result_scale", options.rows, 1, false);
}

/// A column of numbers without gaps: kernels read them one after another.
void check_column(const Checker& check, const MatrixView<const std::int32_t>& numbers,
                  const char* name, std::int64_t count) {
  check.matrix(numbers, name, {ElementType::int32, count, 1});
  if (count > 1 && numbers.stride != 1) {
    check.fail(fmt::format("{} has a stride of {}", name, numbers.stride),
               "give numbers that lie side by side");
  }
}

void check_starts(const Checker& check, const MatrixView<const std::int32_t>& starts,
                  const BitOptions& options) {
  const std::int64_t count = (options.rows + rows_of_start - 1) / rows_of_start;
  check_column(check, starts, "block_starts", count);
  if (starts.device.kind != DeviceKind::cpu) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t start = starts(i, 0);
    if (start >= 0 && start < options.depth && start % quant::depth_padding == 0) continue;
    check.fail(fmt::format("block_starts has {}", start),
               fmt::format("give multiples of {} below {}", quant::depth_padding, options.depth));
  }
}

void check_lists(const Checker& check, const BitInputs& inputs, const BitOptions& options) {
  const auto& offsets = inputs.list_offsets;
  const auto& sources = inputs.list_sources;
  check_column(check, offsets, "list_offsets", options.rows + 1);
  if (sources.device != options.device) {
    check.fail(fmt::format("list_sources lies on {}", to_string(sources.device)),
               fmt::format("the plan is for {}", to_string(options.device)));
  }
  if (options.device.kind != DeviceKind::cpu) return;
  std::int64_t before = 0;
  for (std::int64_t row = 0; row <= options.rows; ++row) {
    const std::int64_t offset = offsets(row, 0);
    if (offset < before || offset > sources.cols || (row == 0 && offset != 0)) {
      check.fail(
          fmt::format("list_offsets has {} behind {} of {} sources", offset, before, sources.cols),
          "give numbers from 0 on that never fall");
    }
    for (; row > 0 && before < offset; ++before) {
      const std::int32_t start = inputs.block_starts((row - 1) / rows_of_start, 0);
      if (sources.data[before] < options.block &&
          start + std::int64_t{sources.data[before]} < options.depth) {
        continue;
      }
      check.fail(fmt::format("list_sources has {} in a block of {} columns", sources.data[before],
                             options.block),
                 "count sources from the start of the block");
    }
  }
}

void check_outputs(const Checker& check, const BitOptions& options, const BitOutputs& outputs) {
  const Device device = options.device;
  switch (options.output) {
    case BitOutput::sums32: return check_sums(check, outputs.sums32, "sums32", device, options);
    case BitOutput::sums64: return check_sums(check, outputs.sums64, "sums64", device, options);
    case BitOutput::values: return check_sums(check, outputs.values, "values", device, options);
    case BitOutput::rows:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.rows, options.cols, options.codes_words);
    case BitOutput::columns:
      return check_tensor(check, outputs.codes, "codes", device, options.requantise->bits,
                          options.cols, options.rows);
    case BitOutput::bytes:
      return check_bytes(check, outputs.bytes, "bytes", device, options.rows, options.cols);
  }
}

}  // namespace tessera::ops
