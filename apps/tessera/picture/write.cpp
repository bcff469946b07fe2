// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "picture/picture.hpp"
#include "picture/png_file.hpp"
#include "tessera/core/error.hpp"
#include "tessera/io/writing.hpp"

namespace tessera::app::picture {

void require_picture_ending(const std::string& path, const char* option) {
  if (path.empty() || path.ends_with(".svg") || path.ends_with(".png")) return;
  throw Error(ErrorCode::invalid_argument,
              "the ending of '" + path + "' does not say which kind of picture to write", option,
              "use .svg or .png");
}

void write(const Picture& picture, const std::string& path) {
  if (path.empty()) return;
  io::write_text_file(path, path.ends_with(".png") ? to_png(picture) : to_svg(picture));
}

bool is_own_picture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string beginning(512, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  const bool is_picture = beginning.starts_with(png_signature) || beginning.starts_with("<svg ");
  return beginning.empty() || (is_picture && beginning.find(maker) != std::string::npos);
}

}  // namespace tessera::app::picture
