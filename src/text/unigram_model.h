// Unigram (Kudo, 2018, arXiv 1804.10959): of all ways to cut a word into pieces, the one whose scores (logarithms of
// probabilities) have the greatest sum, found by Viterbi's algorithm. A character of no piece costs 10 more than the
// worst piece (kUnkPenalty of sentencepiece's unigram_model.cc).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "text/token_model.h"

namespace transept {

struct UnigramPiece {
  std::string text;
  double score = 0;
  bool reached = true;  // whether a text may become it; special tokens may not
};

struct UnigramFile {
  std::vector<UnigramPiece> pieces = {};  // by id; of two with one text the later counts
  std::optional<int32_t> unknown = {};
  std::vector<int32_t> bytes = {};  // the ids of the 256 byte pieces, -1 where there is none; empty: no byte fallback
  double unknown_score = 0;
  // sentencepiece keeps the sums as floats, which decides between ways of nearly equal sums; Hugging Face's are
  // doubles.
  bool single_precision = false;
};
std::unique_ptr<TokenModel> unigram_model(const UnigramFile& file);

}  // namespace transept
