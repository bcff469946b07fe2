// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"
#include "target.hpp"
#include "tessera/io/edge_list.hpp"

namespace tessera::fuzz {

std::vector<std::string> seeds() {
  return {"id,age,colour,label,split\na,3,red,spam,train\nb,,blue,ham,val\nc,5,NA,,test\n",
          "a\t1\t0.5\nb\t2\tnan\nc\t3\t-\n",
          "id,active,2019,class\nb,TRUE,<NA>,x\n# c\na,false,1O,y\nc,n/a,3,\n",
          "label;id;x\r\n\"one, two\";a;1e3\r\n3;b;-.5\r\n;\"c\";\r\n"};
}

std::string mutated(const std::string& input, std::uint64_t number) {
  return mutated_bytes(input, number);
}

bool run(const std::string& input) {
  const MemoryFile nodes(input);
  const MemoryFile edges("a,b\nb,c\nz,a\n");
  io::ReadOptions options;
  options.nodes.path = nodes.path();
  options.nodes.unknown = io::UnknownIds::drop;
  return expect_words([&] { io::read_edge_list(edges.path(), options).validate(); });
}

}  // namespace tessera::fuzz
