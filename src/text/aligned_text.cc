#include "text/aligned_text.h"

#include <algorithm>

#include "base/check.h"
#include "base/problem.h"
#include "text/unicode.h"

namespace transept {
namespace {

constexpr size_t kAlwaysParallel = UINT32_MAX;

// Where the character begins that holds byte `at`.
size_t character_start(std::string_view text, size_t at) {
  while (at > 0 && is_continuation(text[at])) --at;
  return at;
}

size_t character_end(std::string_view text, size_t at) {
  ++at;
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

}  // namespace

size_t AlignedText::Rewritten::run_of(size_t at) const {
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), at, [](size_t a, const Run& run) { return a < run.at; });
  return static_cast<size_t>(after - runs.begin()) - 1;
}

std::pair<size_t, size_t> AlignedText::Rewritten::source(size_t run, size_t at, size_t length) const {
  const Run& r = runs[run];
  if (r.length != kParallel) return {r.begin, size_t{r.begin} + r.length};
  return {r.begin + (at - r.at), r.begin + (at - r.at) + length};
}

std::pair<size_t, size_t> AlignedText::source(size_t from, size_t to) const {
  TRANSEPT_CHECK(from <= to && to <= bytes_.size());
  if (bytes_.empty()) return {offset_, offset_};
  if (from == to) {
    const size_t place = from < bytes_.size() ? source(from, from + 1).first : source(from - 1, from).second;
    return {place, place};
  }
  from = character_start(bytes_, from);
  const size_t last = character_start(bytes_, to - 1), end = character_end(bytes_, last);
  if (rewritten_ == nullptr) return {offset_ + from, offset_ + end};
  const auto of = [&](size_t at, size_t length) {
    return rewritten_->source(rewritten_->run_of(start() + at), start() + at, length);
  };
  const size_t first = of(from, character_end(bytes_, from) - from).first, second = of(last, end - last).second;
  // Characters that changed places may end before they begin.
  return {rewritten_->base + first, rewritten_->base + std::max(first, second)};
}

AlignedText AlignedText::part(size_t from, size_t to) const {
  AlignedText part = *this;
  part.bytes_ = bytes_.substr(from, to - from);
  if (from == to) {
    part.offset_ = source(from, from).first;
    part.rewritten_ = nullptr;
  } else {
    part.offset_ = rewritten_ == nullptr ? offset_ + from : kCut;
  }
  return part;
}

Rewriter::Rewriter(const AlignedText& text)
    : text_(text), old_(text.bytes_), old_start_(text.rewritten_ == nullptr ? 0 : text.start()) {
  // The source of a rewritten text was checked when it was rewritten first.
  if (old_.size() >= kAlwaysParallel) throw InputError("text", "is not under 4 GiB", "split it");
}

void Rewriter::start() {
  if (out_ != nullptr) return;
  out_ = std::make_shared<AlignedText::Rewritten>();
  out_->base = text_.rewritten_ == nullptr ? text_.offset_ : text_.rewritten_->base;
  // Room for a mark at every word; what is not used is never touched.
  out_->bytes.reserve(old_.size() + old_.size() / 2 + 16);
  out_->runs.reserve(old_.size() / 3 + 4);
  const size_t done = at_;
  at_ = 0;
  if (text_.rewritten_ != nullptr && !old_.empty()) run_ = text_.rewritten_->run_of(old_start_);
  copy(done);
}

size_t Rewriter::old_run(size_t at) {
  const auto& runs = text_.rewritten_->runs;
  at += old_start_;
  while (runs[run_].at > at) --run_;
  while (run_ + 1 < runs.size() && runs[run_ + 1].at <= at) ++run_;
  return run_;
}

bool Rewriter::old_parallel(size_t at) {
  return text_.rewritten_ == nullptr || text_.rewritten_->runs[old_run(at)].length == AlignedText::kParallel;
}

std::pair<size_t, size_t> Rewriter::old_source(size_t at, size_t length) {
  if (text_.rewritten_ == nullptr) return {at, at + length};
  return text_.rewritten_->source(old_run(at), old_start_ + at, length);
}

void Rewriter::add(std::string_view text, size_t begin, size_t length) {
  if (text.empty()) return;
  auto& [bytes, runs, base] = *out_;
  if (text.size() >= kAlwaysParallel - bytes.size()) throw InputError("text", "grows beyond 4 GiB", "split it");
  const bool parallel = length == kAlwaysParallel;
  const bool joins = !runs.empty() && runs.back().length == length &&
                     runs.back().begin + (parallel ? bytes.size() - runs.back().at : 0) == begin;
  if (!joins) {
    runs.push_back({static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(begin), static_cast<uint32_t>(length)});
  }
  bytes += text;
}

// The next bytes.size() old bytes become `bytes`, character by character of the same length.
void Rewriter::advance(std::string_view bytes) {
  if (out_ == nullptr) {
    at_ += bytes.size();
    return;
  }
  if (text_.rewritten_ == nullptr) {
    add(bytes, at_, kAlwaysParallel);
    at_ += bytes.size();
    return;
  }
  const auto& runs = text_.rewritten_->runs;
  while (!bytes.empty()) {
    const size_t run = old_run(at_);
    const size_t left = run + 1 < runs.size() ? runs[run + 1].at - (old_start_ + at_) : bytes.size();
    const size_t here = std::min(left, bytes.size());
    if (runs[run].length == AlignedText::kParallel) {
      add(bytes.substr(0, here), runs[run].begin + (old_start_ + at_ - runs[run].at), kAlwaysParallel);
    } else {
      add(bytes.substr(0, here), runs[run].begin, runs[run].length);
    }
    at_ += here;
    bytes.remove_prefix(here);
  }
}

void Rewriter::skip(size_t bytes) {
  if (bytes == 0) return;
  start();
  at_ += bytes;
}

void Rewriter::put(uint32_t code_point, int change) {
  const Utf8Character character(code_point);
  if (change > 0) {
    start();
    if (at_ == 0) {
      const size_t begin = old_.empty() ? 0 : old_source(0, 1).first;
      add(character.view(), begin, 0);
      return;
    }
    const size_t before = character_before(old_, at_);
    const auto [begin, end] = old_source(before, at_ - before);
    add(character.view(), begin, end - begin);
    return;
  }
  const size_t length = character_at(old_, at_).length;
  if (character.view() == old_.substr(at_, length)) {
    copy(length);
  } else {
    start();
    if (character.view().size() == length && old_parallel(at_)) {
      advance(character.view());
    } else {
      const auto [begin, end] = old_source(at_, length);
      add(character.view(), begin, end - begin);
      at_ += length;
    }
  }
  for (int removed = 0; removed < -change && at_ < old_.size(); ++removed) skip(character_at(old_, at_).length);
}

void Rewriter::replace_parallel(std::string_view text) {
  if (text == old_.substr(at_, text.size())) {
    copy(text.size());
    return;
  }
  start();
  advance(text);
}

void Rewriter::insert(std::string_view text, size_t from, size_t to) {
  if (text.empty()) return;
  start();
  if (from == to) {
    const size_t place = old_.empty()         ? 0
                         : from < old_.size() ? old_source(from, 1).first
                                              : old_source(from - 1, 1).second;
    add(text, place, 0);
    return;
  }
  const size_t last = character_before(old_, to);
  const size_t begin = old_source(from, character_at(old_, from).length).first;
  const size_t end = old_source(last, to - last).second;
  add(text, begin, std::max(begin, end) - begin);
}

void Rewriter::finish(AlignedText& text) {
  if (out_ != nullptr) copy(old_.size() - at_);
  AlignedText result = text_;
  if (out_ != nullptr) {
    result.offset_ = text_.offset();
    result.bytes_ = out_->bytes;
    result.rewritten_ = out_->bytes.empty() ? nullptr : std::move(out_);
    if (result.rewritten_ == nullptr) result.bytes_ = {};
  }
  text = std::move(result);
}

}  // namespace transept
