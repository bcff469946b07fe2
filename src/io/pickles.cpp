// SPDX-License-Identifier: Apache-2.0
#include "io/pickles.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "core/listing.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

/// The script that converts such files: where it was installed beside the program, or where it
/// stands in the sources that the program was built in.
std::string converter() {
  std::error_code none;
  const fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const char* const place : {"../share/tessera/to_npz.py", "../../examples/python/to_npz.py",
                                  "../../../examples/python/to_npz.py"}) {
    const fs::path script = (folder / place).lexically_normal();
    if (!folder.empty() && fs::is_regular_file(script, none)) return script.string();
  }
  return "examples/python/to_npz.py";
}

/// A word of a command line as a shell wants to have it.
std::string word(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./+,:=@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// True for a file of this folder that holds data, and not how PyG made it.
bool holds_data(const fs::directory_entry& entry) {
  std::error_code ignored;
  const std::string name = entry.path().filename().string();
  return name.ends_with(".pt") && !name.starts_with("pre_") && entry.is_regular_file(ignored);
}

std::string name_of(const std::string& path) {
  std::error_code unknown;
  fs::path normal = fs::absolute(path, unknown).lexically_normal();
  if (!normal.has_filename()) normal = normal.parent_path();
  const std::string ending = normal.extension().string();
  return (ending == ".pt" || ending == ".pth" ? normal.stem() : normal.filename()).string();
}

/// Where such files are, and of which data sets: none where there are no such files.
struct PlanetoidFiles {
  std::string folder;
  std::set<std::string> names;
};

/// NAME of a file ind.NAME.PART, else nothing.
std::string planetoid_name(const std::string& file) {
  constexpr std::string_view head = "ind.";
  for (const std::string_view part :
       {".x", ".tx", ".allx", ".y", ".ty", ".ally", ".graph", ".test.index"}) {
    if (file.size() > head.size() + part.size() && file.starts_with(head) && file.ends_with(part)) {
      return file.substr(head.size(), file.size() - head.size() - part.size());
    }
  }
  return {};
}

PlanetoidFiles planetoid_in(const std::string& folder) {
  for (const fs::path& place : {fs::path(folder), fs::path(folder) / "raw"}) {
    PlanetoidFiles found{place.string(), {}};
    std::error_code problem;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, problem)) {
      const std::string file = entry.path().filename().string();
      if (file.ends_with(".graph")) found.names.insert(planetoid_name(file));
    }
    found.names.erase("");
    if (!found.names.empty()) return found;
  }
  return {};
}

/// The data set that this file is a part of: its siblings tell that the name is none by chance.
PlanetoidFiles planetoid_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  const std::string name = planetoid_name(fs::path(path).filename().string());
  std::error_code none;
  if (name.empty() || !fs::exists(parent / ("ind." + name + ".test.index"), none)) return {};
  return {parent.empty() ? "." : parent.string(), {name}};
}

}  // namespace

bool begins_as_torch_file(std::string_view first_bytes) {
  // Before version 1.6 of PyTorch a pickle that begins with a number, since then a zip archive.
  constexpr std::string_view old_begin = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
  return first_bytes.starts_with(old_begin) ||
         (first_bytes.starts_with("PK\x03\x04") &&
          first_bytes.find("/data.pkl") != std::string_view::npos);
}

bool is_processed_folder(const std::string& folder) {
  for (const fs::path& place : {fs::path(folder), fs::path(folder) / "processed"}) {
    std::error_code problem;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, problem)) {
      if (holds_data(entry)) return true;
    }
  }
  return false;
}

Dataset refuse_torch_file(const std::string& path, const ReadOptions&) {
  std::error_code none;
  const char* const what = fs::is_directory(path, none) ? "holds files" : "is a file";
  throw Error(
      ErrorCode::unsupported, fmt::format("{} of PyTorch's, which only Python can read", what),
      path,
      fmt::format("write a Data there by tessera.save(data, \"{}.tsr\"), or convert it here, "
                  "which runs no code of the file: python3 {} pyg {} {}",
                  name_of(path), word(converter()), word(path), word(name_of(path) + ".npz")));
}

bool is_planetoid_or_pickle(const FirstLook& look) {
  if (look.is_folder) return !planetoid_in(look.path).names.empty();
  return look.first_bytes.starts_with('\x80') || !planetoid_of(look.path).names.empty();
}

Dataset refuse_pickle(const std::string& path, const ReadOptions&) {
  std::error_code none;
  const bool is_folder = fs::is_directory(path, none);
  const PlanetoidFiles found = is_folder ? planetoid_in(path) : planetoid_of(path);
  if (found.names.empty()) {
    throw Error(ErrorCode::unsupported, "is a Python pickle, which only Python can read", path,
                fmt::format("open it in Python if you trust it, since that runs what is in it, and "
                            "save the graph with the functions of {}",
                            converter()));
  }
  const std::string name = *found.names.begin();
  throw Error(
      ErrorCode::unsupported,
      fmt::format("{} Planetoid's pickles of {}, which only Python can read",
                  is_folder ? "holds" : "is one of",
                  listed({found.names.begin(), found.names.end()})),
      path,
      fmt::format("convert them, which runs no code of theirs: python3 {} planetoid {} {} {}",
                  word(converter()), word(found.folder), word(name), word(name + ".npz")));
}

}  // namespace tessera::io
