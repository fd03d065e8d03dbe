// Jinja templates as chat templates use them: jinja2 3.1's language and results with the settings of Hugging Face's
// transformers (trim_blocks, lstrip_blocks, ImmutableSandboxedEnvironment, break and continue, the block `generation`,
// raise_exception, strftime_now, and a tojson that escapes no HTML). tools/make_chat_goldens.py compares the two.
//
// What differs: integers have 64 bits; a name is looked up when it is read (jinja2 settles before it renders that a
// variable which the template sets further down is not the one that it was given); inheritance, imports, recursive
// loops and the filters that no chat template uses are refused; `safe` and `escape` give plain strings; a rendering is
// bounded (text/jinja/heap.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"

namespace transept {

class JinjaTemplate {
 public:
  // `where` names the template in errors. InputError `where`: line N when it is no template, at any bytes.
  static JinjaTemplate parse(std::string_view source, const std::string& where);

  JinjaTemplate(JinjaTemplate&&) noexcept;
  JinjaTemplate& operator=(JinjaTemplate&&) noexcept;
  ~JinjaTemplate();

  // `variables`: an object. InputError `where`: line N when the template fails, goes beyond its bounds, or calls
  // raise_exception, whose message it then is. Safe to call from several threads.
  std::string render(const Json& variables) const;

 private:
  struct Parsed;
  explicit JinjaTemplate(std::unique_ptr<const Parsed> parsed);
  std::unique_ptr<const Parsed> parsed_;
};

}  // namespace transept
