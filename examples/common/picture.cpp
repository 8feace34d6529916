// Writes PNG files by stb, and makes contact sheets.
#include "picture.h"

#include <cmath>
#include <stdexcept>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb_image_write.h>

void write_png(const std::filesystem::path& path, const Picture& picture) {
  // Pixels become three bytes each, whatever the host's byte order.
  std::vector<unsigned char> bytes;
  bytes.reserve(picture.pixels.size() * 3);
  for (std::uint32_t p : picture.pixels)
    for (int shift : {0, 8, 16}) bytes.push_back(static_cast<unsigned char>(p >> shift));
  stbi_write_png_compression_level = 12;
  if (!stbi_write_png(path.string().c_str(), picture.width, picture.height, 3, bytes.data(), picture.width * 3))
    throw std::runtime_error(path.string() + ": the picture cannot be written");
}

Picture contact_sheet(const std::vector<Picture>& pictures) {
  constexpr int kGap = 4;
  const int columns = int(std::ceil(std::sqrt(double(pictures.size()))));
  const int rows = (int(pictures.size()) + columns - 1) / columns;
  const int width = pictures[0].width, height = pictures[0].height;
  Picture sheet;
  sheet.width = columns * (width + kGap) - kGap;
  sheet.height = rows * (height + kGap) - kGap;
  sheet.pixels.assign(std::size_t(sheet.width) * std::size_t(sheet.height), 0xffffffffu);
  for (std::size_t k = 0; k < pictures.size(); ++k) {
    const int left = int(k) % columns * (width + kGap), top = int(k) / columns * (height + kGap);
    for (int y = 0; y < height; ++y) {
      const auto from = pictures[k].pixels.begin() + std::ptrdiff_t(y) * width;
      std::copy(from, from + width, sheet.pixels.begin() + (std::ptrdiff_t(top) + y) * sheet.width + left);
    }
  }
  return sheet;
}
