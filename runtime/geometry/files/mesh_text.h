// Mesh files as text: lines with any system's ends, words and numbers.
#pragma once
#include <cstddef>
#include <string_view>

namespace weft::mesh_formats {

/// The lines of a text. They end with LF, CR LF or, as on old systems, CR.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  /// Reads the next line without its end.
  /// \return  false when there is none
  bool next(std::string_view& line) {
    if (text_.empty()) return false;
    line = text_.substr(0, text_.find_first_of("\r\n"));
    text_.remove_prefix(line.size());
    text_.remove_prefix(text_.starts_with("\r\n") ? 2 : text_.empty() ? 0 : 1);
    ++number_;
    return true;
  }
  /// The number of the last line, from 1.
  std::size_t number() const { return number_; }

 private:
  std::string_view text_;
  std::size_t number_ = 0;
};

/// The words of a text, separated by white space.
class Words {
 public:
  /// \param line  the number of the text's first line
  explicit Words(std::string_view text, std::size_t line = 1) : text_(text), line_(line) {}
  /// The next word; empty at the end.
  std::string_view next() {
    std::size_t from = 0;
    for (; from < text_.size() && is_space(text_[from]); ++from)
      if (text_[from] == '\n' || (text_[from] == '\r' && !text_.substr(from + 1).starts_with('\n'))) ++line_;
    std::size_t end = from;
    while (end < text_.size() && !is_space(text_[end])) ++end;
    const std::string_view word = text_.substr(from, end - from);
    text_.remove_prefix(end);
    return word;
  }
  /// The number of the line that has the last word.
  std::size_t line() const { return line_; }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  std::string_view text_;
  std::size_t line_;
};

/// Whether the whole word is a number. Infinities and NaNs are numbers here.
bool parse_number(std::string_view word, double& value);
/// Whether the word is this one, in upper or lower case.
/// \param lower  in lower case
bool is_word(std::string_view word, std::string_view lower);

}  // namespace weft::mesh_formats
