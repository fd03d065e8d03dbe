// The block "post_processor" of a tokenizer.json: the tokens in front of a text and behind it, and whether the offsets
// of tokens leave out the white space at their ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/problem.h"

namespace transept {

struct PostProcessor {
  std::vector<int32_t> before, after;
  // ByteLevel and RobertaProcessing with trim_offsets. `keeps_prefix_space`: a space in front of the first token counts
  // as added by the tokenizer, and is left.
  bool trims_offsets = false, keeps_prefix_space = false;
};

// TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence; JSON null does nothing.
PostProcessor read_post_processor(const Json& block, const std::string& where, Problems& problems);

}  // namespace transept
