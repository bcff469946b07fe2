// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/npz.hpp"

#include "support.hpp"
#include "support/datasets.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {written(".npz", [](const auto& path) { io::write_npz(test::with_everything(), path); }),
          written(".npz", [](const auto& path) {
            io::write_npz(test::with_sparse_features_and_multi_labels(), path);
          })};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_npz(file.path()).validate(); });
}

}  // namespace tessera::fuzz
