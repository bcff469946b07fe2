// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/matrix_market.hpp"

#include "support.hpp"
#include "support/datasets.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {"%%MatrixMarket matrix coordinate integer symmetric\n%\n3 3 2\n2 1 5\n3 2 6\n",
          "%%MatrixMarket matrix coordinate pattern general\n3 4 2\n1 1\n3 4\n",
          written(".mtx.gz", [](const auto& path) {
            io::write_matrix_market(test::with_everything().graph, path);
          })};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  return expect_words([&] { io::read_matrix_market(file.path()).validate(); });
}

}  // namespace tessera::fuzz
