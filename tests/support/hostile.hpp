// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/io/container.hpp"
#include "tessera/io/matrix_market.hpp"
#include "tessera/io/npz.hpp"

#include "support/datasets.hpp"
#include "support/files.hpp"

/// Feeding readers files that are damaged or that lie: each must give an error in words, and none
/// may make the reader ask for much memory.
namespace tessera::test {

using Read = std::function<Dataset(const std::string& path)>;

inline constexpr std::int64_t few_bytes = 8 << 20;

class HostileFile : public testing::Test {
 protected:
  /// What the reader says about these bytes; "no error" if it takes them.
  std::string outcome(const std::string& bytes, const Read& read) {
    test::write_file(file_, bytes);
    const std::int64_t before = host_memory_use().current_bytes;
    reset_host_memory_peak();
    std::string said = "no error";
    try {
      read(file_).validate();
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
      said = error.what();
      EXPECT_THAT(said, testing::StartsWith(file_));
    }
    EXPECT_LT(host_memory_use().peak_bytes - before, few_bytes) << said;
    return said;
  }

  test::TemporaryFolder folder_;
  std::string file_ = folder_ / "hostile";
};

inline const Read read_npz = [](const std::string& path) { return io::read_npz(path); };
inline const Read read_container = [](const std::string& path) { return io::read_container(path); };
inline const Read map_container = [](const std::string& path) {
  return io::read_container(path, {.map = true});
};
inline const Read read_mtx = [](const std::string& path) { return io::read_matrix_market(path); };

}  // namespace tessera::test
