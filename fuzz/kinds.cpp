// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/relational.hpp"

#include "folder.hpp"
#include "target.hpp"

/// Folders of kinds of vertices and relations.
namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {
      "=== nodes_a.csv\nid,x,label\na1,1.5,yes\na2,2,no\n=== nodes_b.csv\nid\nb1\nb2\n"
      "=== edges_a_r_b.csv\na,b\na1,b1\na2,b2\n=== edges_b_s_b.csv\nfrom;to\nb1;b2\n",
      "=== nodes_a.csv\nid\tsplit\n1\ttrain\n2\ttest\n=== nodes_b.csv\nid\n=== "
      "edges_a_r_b.csv\nx,y\n",
      "=== nodes_a.csv\nid\n\"a 1\"\n=== edges_a_r_b.csv\n\"a 1\",b\n=== nodes_b.csv\nid\nb"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  static Folder folder("kinds",
                       {"nodes_a.csv", "nodes_b.csv", "edges_a_r_b.csv", "edges_b_s_b.csv"});
  const std::string path = folder.holding(input);
  return expect_words([&] { io::read_relational(path).validate(); });
}

}  // namespace tessera::fuzz
