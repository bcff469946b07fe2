// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/edge_list.hpp"

#include "support.hpp"
#include "target.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {"source,target,weight\n0,1,0.5\n2,1,3e-2\n1,0,7\n",
          "# FromNodeId\tToNodeId\r\n0\t1\r\n0\t2\r\n2\t1",
          "\xEF\xBB\xBF\"ann\";\"bob, jr\"\n\"the \"\"cat\"\"\";ann\n// end\n",
          "% sym\n1 2 3 4\n 2   3 4 5 \n"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile file(input);
  io::ReadOptions options;
  options.duplicates = Duplicates::sum;
  // What the file does not say is taken from its length, so that all ways are gone.
  options.edges.base = static_cast<int>(input.size() % 2);
  options.edges.weight = input.size() % 3 == 0 ? "none" : (input.size() % 3 == 1 ? "" : "3");
  options.edges.ids = static_cast<io::IdKind>(input.size() % 5 % 3);
  const bool accepted = expect_words([&] { io::read_edge_list(file.path(), options).validate(); });
  options.edges = {};
  options.edges.weight = "none";
  return expect_words([&] { io::read_edge_list(file.path(), options).validate(); }) || accepted;
}

}  // namespace tessera::fuzz
