// SPDX-License-Identifier: Apache-2.0
#include "io/pickles.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "io/file.hpp"

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
  throw Error(ErrorCode::unsupported,
              fmt::format("{} of PyTorch's, which only Python can read", what), path,
              fmt::format("convert it, which runs no code of the file: python3 {} pyg {} {}",
                          word(converter()), word(path), word(name_of(path) + ".npz")));
}

Dataset refuse_planetoid_file(const std::string& path, const ReadOptions&) {
  throw Error(ErrorCode::unsupported, "is a Python pickle, which only Python can read (and run)",
              path,
              fmt::format("convert Planetoid's files with: python3 {} planetoid FOLDER NAME "
                          "NAME.npz",
                          word(converter())));
}

}  // namespace tessera::io
