// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/tu.hpp"

#include "folder.hpp"
#include "target.hpp"

/// Folders of the TU collection.
namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "=== T_A.txt\n1, 2\n2, 1\n4, 5\n=== T_graph_indicator.txt\n1\n1\n1\n2\n2\n"
      "=== T_graph_labels.txt\n1\n-1\n=== T_node_labels.txt\n3, 0\n0, 1\n3, 1\n3, 0\n7, 0\n"
      "=== T_node_attributes.txt\n1.5, 2\n-1e3, 0\n.5, 7\n0, 0\n1, 1\n",
      "=== T_A.txt\n1,2\r\n2,1\r\n=== T_graph_indicator.txt\n1\n1\n=== T_edge_labels.txt\n4\n5\n"
      "=== T_edge_attributes.txt\n0.5, 1\n2, 3\n=== T_graph_attributes.txt\n0.25\n",
      "=== T_A.txt\n\n=== T_graph_indicator.txt\n1\n2\n=== T_node_labels.txt\n5\n6"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  static Folder folder("tu", {"T_A.txt", "T_graph_indicator.txt", "T_graph_labels.txt",
                              "T_node_labels.txt", "T_node_attributes.txt", "T_edge_labels.txt",
                              "T_edge_attributes.txt", "T_graph_attributes.txt"});
  const std::string path = folder.holding(input);
  return expect_words([&] { io::read_tu(path).validate(); });
}

}  // namespace tessera::fuzz
