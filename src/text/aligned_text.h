// A text that was rewritten, and where each of its characters came from: what normalizers and pre-tokenizers work on.
// A text that nobody rewrote is a view of its source and costs nothing. A rewritten one shares its bytes with all its
// parts, and its alignment is a list of runs, not of characters: a run either keeps the byte length of every character
// (so its source is found by counting) or stands as a whole for one source range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace transept {

class AlignedText {
 public:
  AlignedText() = default;
  // `source` are bytes [offset, offset + source.size()) of the whole text: valid UTF-8, which must outlive this and
  // everything made from it.
  explicit AlignedText(std::string_view source, size_t offset = 0) : bytes_(source), offset_(offset) {}

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Where in the whole text it begins; 0 means that it begins the text.
  size_t offset() const { return offset_; }

  // Bytes [begin, end) of the whole text that bytes [from, to) of the rewritten one stand for. Of a character that is
  // cut, the whole. `from` <= `to` <= size(); an empty range gives an empty range at its place.
  std::pair<size_t, size_t> source(size_t from, size_t to) const;

  // Bytes [from, to) as a text of their own; both at borders of characters.
  AlignedText part(size_t from, size_t to) const;

 private:
  friend class Rewriter;

  // Bytes [at, at of the next run) of the rewritten text. `parallel`: its characters have the byte lengths of the
  // characters at `begin`; else all of them stand for [begin, end).
  struct Run {
    size_t at, begin, end;
    bool parallel;
  };
  struct Rewritten {
    std::string bytes;
    std::vector<Run> runs;
  };

  // The source range of the character that begins at byte `at` of the shared bytes, `length` bytes long.
  static std::pair<size_t, size_t> character(const Rewritten& text, size_t run, size_t at, size_t length);
  static size_t run_of(const Rewritten& text, size_t at);

  std::string_view bytes_;
  size_t offset_ = 0;
  std::shared_ptr<const Rewritten> rewritten_;  // null: bytes_ is the source itself
};

// Rewrites a text from its beginning to its end. Until something differs nothing is allocated.
//
//   Rewriter rewriter(text);
//   rewriter.copy(5);           // five bytes as they are
//   rewriter.put('e', 0);       // the next character becomes e
//   rewriter.put(0x0301, 1);    // a new character, aligned as the one before it in the old text
//   rewriter.skip(2);           // two bytes are dropped
//   rewriter.finish(text);      // the rest as it is
//
// The alignment of `put` is that of Hugging Face tokenizers (NormalizedString::transform): with change <= 0 the new
// character takes the place and the source of the next old one, and -change further old ones vanish; with change > 0 it
// is inserted and shares the source of the old character before the cursor (none at the very beginning: an empty
// range).
class Rewriter {
 public:
  explicit Rewriter(const AlignedText& text);

  // What is still to be rewritten, and where in the old text that begins.
  std::string_view rest() const { return old_.substr(at_); }
  size_t at() const { return at_; }

  void copy(size_t bytes);  // whole characters
  void skip(size_t bytes);  // whole characters
  void put(uint32_t code_point, int change);
  // Characters `text` instead of the next text.size() bytes, each as long as the one that it replaces.
  void replace_parallel(std::string_view text);
  // All of `text` (whole characters) for the old bytes [from, to), wherever the cursor is; it does not move.
  void insert(std::string_view text, size_t from, size_t to);

  // Copies the rest and hands the result to `text`, which may be the text handed to the constructor.
  void finish(AlignedText& text);

 private:
  void start();
  std::pair<size_t, size_t> old_source(size_t from, size_t to);
  void add_run(size_t begin, size_t end, bool parallel);

  AlignedText text_;
  std::string_view old_;
  size_t at_ = 0;
  size_t copied_ = 0;  // while nothing differs: bytes copied so far
  std::shared_ptr<AlignedText::Rewritten> out_;
};

}  // namespace transept
