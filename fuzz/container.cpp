// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/container.hpp"

#include "support.hpp"
#include "support/datasets.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      written(".tsr", [](const auto& path) { io::write_container(test::with_everything(), path); }),
      written(".tsr", [](const auto& path) {
        io::write_container(test::with_sparse_features_and_multi_labels(), path);
      })};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  static const std::vector<std::string> all = seeds();
  return mutated_container(input, number, all);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  const bool read = expect_words([&] { io::read_container(file.path()).validate(); });
  const bool mapped =
      expect_words([&] { io::read_container(file.path(), {.map = true}).validate(); });
  return read && mapped;
}

}  // namespace tessera::fuzz
