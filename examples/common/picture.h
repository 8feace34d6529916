// Pictures on the host: PNG files and contact sheets.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

/// A picture in rows from the top; a pixel's bytes from the lowest are red, green, blue, alpha.
struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint32_t> pixels;
};

/// Writes a PNG file. Errors: std::runtime_error naming the file that cannot be written.
void write_png(const std::filesystem::path& path, const Picture& picture);

/// Puts pictures of one size side by side, row by row from the left, in about as many rows as columns.
Picture contact_sheet(const std::vector<Picture>& pictures);
