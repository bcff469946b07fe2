// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/ogb.hpp"

#include "folder.hpp"
#include "target.hpp"

/// Folders of the Open Graph Benchmark.
namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "=== raw/edge.csv\n0,1\n1,2\n2,0\n=== raw/num-node-list.csv\n3\n=== raw/node-feat.csv\n"
      "1,2.5\n-1e3,0\n.5,7\n=== raw/node-label.csv\n0\n1\n0\n=== split/by/train.csv\n0\n"
      "=== split/by/valid.csv\n1\n=== split/by/test.csv\n2\n",
      "=== raw/edge.csv\n0,1\r\n1,0\r\n=== raw/num-node-list.csv\n2",
      "=== raw/edge.csv\n0,1\n=== raw/num-node-list.csv\n2\n=== raw/node-label.csv\n0,1,1\n1,1,0"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  static Folder folder(
      "ogb", {"raw/edge.csv", "raw/num-node-list.csv", "raw/node-feat.csv", "raw/node-label.csv",
              "split/by/train.csv", "split/by/valid.csv", "split/by/test.csv"});
  const std::string path = folder.holding(input);
  return expect_words([&] { io::read_ogb(path).validate(); });
}

}  // namespace tessera::fuzz
