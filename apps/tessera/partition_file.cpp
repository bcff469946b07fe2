// SPDX-License-Identifier: Apache-2.0
#include "partition_file.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/io/index_file.hpp"

namespace tessera::app {

Partition read_partition_file(const std::string& path, VertexId vertices, std::int32_t parts) {
  const std::vector<std::int64_t> numbers = io::read_index_file(path, vertices);
  Partition result;
  result.method = "file";
  result.parts = parts;
  result.assignment.reserve(numbers.size());
  for (std::size_t vertex = 0; vertex < numbers.size(); ++vertex) {
    const std::int64_t part = numbers[vertex];
    if (part < 0 || part >= std::numeric_limits<std::int32_t>::max()) {
      throw Error(ErrorCode::bad_data, fmt::format("part {} is out of range", part),
                  fmt::format("{}, line {}", path, vertex + 1), "number the parts from 0");
    }
    result.assignment.push_back(static_cast<std::int32_t>(part));
    if (parts == 0) result.parts = std::max(result.parts, static_cast<std::int32_t>(part + 1));
  }
  result.parts = std::max(result.parts, 1);
  result.validate(vertices);
  return result;
}

}  // namespace tessera::app
