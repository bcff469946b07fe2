// SPDX-License-Identifier: Apache-2.0
// How fast text becomes a graph, beside what the machine can do at all with the same bytes: copy
// them, and look for the ends of their lines.
//   bench_read_text [EDGES [FOLDER]]        writes JSON to stdout; FOLDER is for the files, /tmp by
//   default
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/io/open.hpp"

namespace {

using namespace tessera;

struct Seconds {
  double wall = 0;
  double cpu = 0;  ///< of all threads; the one to look at where others use the machine
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The best of three.
template <class Body>
Seconds measure(Body&& body) {
  Seconds best{1e30, 1e30};
  for (int i = 0; i < 3; ++i) {
    const double cpu = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    best.wall = std::min(best.wall, wall.count());
    best.cpu = std::min(best.cpu, cpu_seconds() - cpu);
  }
  return best;
}

void write_edges(const std::string& path, std::int64_t edges, const char* separator, int base,
                 const std::string& head, bool weights) {
  const auto vertices = static_cast<std::uint64_t>(std::max<std::int64_t>(edges / 10, 10));
  const Random random(1);
  std::ofstream file(path);
  file << head;
  std::string text;
  for (std::int64_t k = 0; k < edges; ++k) {
    const auto element = static_cast<std::uint64_t>(k);
    fmt::format_to(std::back_inserter(text), "{}{}{}",
                   random.below(2 * element, vertices) + static_cast<unsigned>(base), separator,
                   random.below(2 * element + 1, vertices) + static_cast<unsigned>(base));
    if (weights) fmt::format_to(std::back_inserter(text), "{}0.{}", separator, element % 10000);
    text += '\n';
    if (text.size() > (1 << 20)) {
      file << text;
      text.clear();
    }
  }
  file << text;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string record(const char* what, const char* file, int threads, std::size_t bytes,
                   const Seconds& seconds, double memory_share) {
  const double megabytes = static_cast<double>(bytes) / 1e6;
  return fmt::format(
      R"({{"what": "{}", "file": "{}", "threads": {}, "megabytes": {:.1f}, "wall_seconds": {:.3f}, )"
      R"("cpu_seconds": {:.3f}, "mb_per_wall_second": {:.0f}, "mb_per_cpu_second": {:.0f}, )"
      R"("peak_memory_over_graph": {}}})",
      what, file, threads, megabytes, seconds.wall, seconds.cpu, megabytes / seconds.wall,
      megabytes / seconds.cpu, memory_share > 0 ? fmt::format("{:.2f}", memory_share) : "null");
}

std::int64_t bytes_of(const Graph& graph) {
  return (std::int64_t{graph.num_rows()} + 1) * 8 + graph.num_edges() * 4 +
         graph.values().size() * std::int64_t{4};
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t edges = argc > 1 ? std::atoll(argv[1]) : 20'000'000;
  const std::string folder = argc > 2 ? argv[2] : "/tmp";
  const int cores = num_threads();
  struct File {
    const char* name;
    const char* separator;
    int base;
    bool weights;
  };
  const File files[] = {{"pattern.mtx", " ", 1, false},
                        {"real.mtx", " ", 1, true},
                        {"edges.csv", ",", 0, false},
                        {"weighted.tsv", "\t", 0, true}};
  std::vector<std::string> records;
  for (const File& file : files) {
    const std::string path = fmt::format("{}/tessera-bench-{}-{}", folder, ::getpid(), file.name);
    const std::int64_t vertices = std::max<std::int64_t>(edges / 10, 10);
    const std::string head =
        file.base == 0 ? ""
                       : fmt::format("%%MatrixMarket matrix coordinate {} general\n{} {} {}\n",
                                     file.weights ? "real" : "pattern", vertices, vertices, edges);
    write_edges(path, edges, file.separator, file.base, head, file.weights);
    {
      const std::string text = read_file(path);
      std::vector<char> copy(text.size());
      records.push_back(record("memcpy", file.name, 1, text.size(),
                               measure([&] { std::memcpy(copy.data(), text.data(), text.size()); }),
                               0));
      std::int64_t lines = 0;
      records.push_back(record("line ends", file.name, 1, text.size(), measure([&] {
                                 for (const char* at = text.data();; ++lines, ++at) {
                                   const auto left =
                                       static_cast<std::size_t>(text.data() + text.size() - at);
                                   at = static_cast<const char*>(std::memchr(at, '\n', left));
                                   if (at == nullptr) break;
                                 }
                               }),
                               0));
      if (lines == 0) return 1;
    }
    io::ReadOptions options;
    options.duplicates = Duplicates::first;
    const std::size_t bytes = std::filesystem::file_size(path);
    for (int threads = 1; threads <= cores; threads *= 2) {
      set_num_threads(threads);
      double share = 0;
      const Seconds seconds = measure([&] {
        reset_host_memory_peak();
        const std::int64_t before = host_memory_use().current_bytes;
        const Dataset dataset = io::open(path, options);
        share = static_cast<double>(host_memory_use().peak_bytes - before) /
                static_cast<double>(bytes_of(dataset.graph));
      });
      records.push_back(record("read", file.name, threads, bytes, seconds, share));
      std::fprintf(stderr, "%s\n", records.back().c_str());
    }
    std::filesystem::remove(path);
  }
  fmt::print("[\n  {}\n]\n", fmt::join(records, ",\n  "));
}
