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
  // Where in the whole text the part was cut out that this is, whatever was then removed of it; 0: it begins the text.
  size_t offset() const { return offset_ == kCut ? source(0, 0).first : offset_; }

  // Bytes [begin, end) of the whole text that bytes [from, to) of the rewritten one stand for. Of a character that is
  // cut, the whole. `from` <= `to` <= size(); an empty range gives an empty range at its place.
  std::pair<size_t, size_t> source(size_t from, size_t to) const;

  // Bytes [from, to) as a text of their own; both at borders of characters.
  AlignedText part(size_t from, size_t to) const;

 private:
  friend class Rewriter;

  static constexpr uint32_t kParallel = UINT32_MAX;
  static constexpr size_t kCut = SIZE_MAX;
  // Bytes [at, at of the next run) of the rewritten text. Its characters have the byte lengths of the source's at
  // `begin` when `length` is kParallel; else all of them stand for [begin, begin + length). Source positions count from
  // `base`: 32 bits keep a run small.
  struct Run {
    uint32_t at, begin, length;
  };
  struct Rewritten {
    std::string bytes;
    std::vector<Run> runs;
    size_t base = 0;

    // The last run that begins at `at` or before it; `at` < bytes.size().
    size_t run_of(size_t at) const;
    // The source range, from base, of the character of this run at `at`, which is `length` bytes long.
    std::pair<size_t, size_t> source(size_t run, size_t at, size_t length) const;
  };

  // Where bytes_ begins in those that it shares.
  size_t start() const { return static_cast<size_t>(bytes_.data() - rewritten_->bytes.data()); }

  std::string_view bytes_;
  size_t offset_ = 0;                           // kCut: found by its alignment when somebody asks
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
  // InputError for a text that is not under 4 GiB.
  explicit Rewriter(const AlignedText& text);

  // The old text, and how much of it is done.
  std::string_view old() const { return old_; }
  size_t at() const { return at_; }

  void copy(size_t bytes) { advance(old_.substr(at_, bytes)); }  // whole characters
  void copy_to(size_t at) { copy(at - at_); }
  void skip(size_t bytes);  // whole characters
  void put(uint32_t code_point, int change);
  // `text` instead of as many old bytes: each character as long as the one that it replaces.
  void replace_parallel(std::string_view text);
  // Adds `text` (whole characters), standing for what bytes [from, to) of the old text stand for; the cursor stays.
  void insert(std::string_view text, size_t from, size_t to);

  // Copies the rest and hands the result to `text`, which may be the text that the constructor got.
  void finish(AlignedText& text);

 private:
  using Run = AlignedText::Run;

  void start();
  void advance(std::string_view bytes);
  // The source of the old character at `at`, which is `length` bytes long.
  std::pair<size_t, size_t> old_source(size_t at, size_t length);
  size_t old_run(size_t at);
  bool old_parallel(size_t at);
  void add(std::string_view text, size_t begin, size_t length);

  const AlignedText text_;
  const std::string_view old_;
  const size_t old_start_;  // where old_ begins in the bytes that it shares
  size_t at_ = 0;
  size_t run_ = 0;  // a run of the old text near the cursor
  std::shared_ptr<AlignedText::Rewritten> out_;
};

}  // namespace transept
