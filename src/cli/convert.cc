// transept convert: a model folder written again: with another architecture and a receipt of what that cost, in the
// form of a Hugging Face family or in our own, in another type, in shards.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/problem.h"
#include "base/quantity.h"
#include "cli/command.h"
#include "cli/conversion.h"
#include "cli/convert_kv_heads.h"
#include "cli/model_argument.h"
#include "convert/family.h"
#include "convert/folder_names.h"
#include "convert/model_folder.h"

namespace transept {
namespace {

namespace fs = std::filesystem;

DType parse_dtype(const std::string& name) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (name == dtype_name(dtype)) return dtype;
  }
  throw InputError("--dtype", "\"" + name + "\" is not supported", "supported are f32, f16 and bf16");
}

int64_t shard_bytes(const std::string& text) {
  const std::optional<double> bytes = parse_bytes(text);
  if (!bytes || *bytes < 1 || *bytes > 0x1p62)
    throw InputError("--max-shard-size", "\"" + text + "\" is not a size", "write it as 500MB or 5GB");
  return static_cast<int64_t>(*bytes);
}

// Where the folder is made before it gets its name, so that a stop leaves no half of it. A recovery that was stopped
// there stays.
fs::path part_folder(const fs::path& out, bool overwrite, const fs::path& source) {
  std::error_code code;
  if (fs::exists(out, code)) {
    if (fs::equivalent(out, source, code)) throw InputError(out.string(), "is the model itself", "name another folder");
    if (!overwrite) throw InputError(out.string(), "exists already", "name another folder, or give --overwrite");
    if (!is_model_folder(out))
      throw InputError(out.string(), "is no model folder, so it is not overwritten", "name another folder");
  }
  fs::path part = out;
  part += ".part";
  make_writable_folder(part);
  for (const auto& entry : fs::directory_iterator(part)) {
    if (entry.path() != recovery_folder(part)) fs::remove_all(entry.path());
  }
  return part;
}

void check_family(const std::string& name) {
  if (name.empty() || name == kOwnType || find_family(name)) return;
  std::string known(kOwnType);
  for (const Family* f : families()) known += ", " + std::string(f->model_type);
  throw InputError("--family", "\"" + name + "\" is unknown", "known are " + known);
}

// What was begun goes, unless it got its name, or a recovery can go on there.
struct Begun {
  fs::path folder;
  ~Begun() {
    std::error_code code;
    if (!recovery_can_go_on(folder)) fs::remove_all(folder, code);
  }
};

struct Options {
  std::string model, out, dtype = "f32", family, max_shard_size;
  bool overwrite = false;
  KvHeadsOptions kv_heads;
  CLI::Option* kv_heads_given = nullptr;
  ConversionOptions conversion;
};

// The change of architecture that was asked for, if any.
std::optional<Conversion> conversion_of(const Options& o, const ArchSpec& before) {
  throw_if_any(check(o.conversion));
  if (o.kv_heads_given->count() > 0) return kv_heads_conversion(o.kv_heads, before, !o.conversion.data.empty());
  Problems problems;
  if (!o.kv_heads.method.empty()) problems.push_back({"--kv-method", "is for --kv-heads", "give --kv-heads too"});
  if (o.conversion.any())
    problems.push_back({"--data", "and its options are for a change of architecture", "give --kv-heads too"});
  throw_if_any(std::move(problems));
  return std::nullopt;
}

void write_text(const fs::path& path, const std::string& text) {
  FileWriter out(path);
  out.write(text);
  out.close();
}

int run(const Options& o, const Globals& globals) {
  const fs::path source = resolve_folder(o.model);
  fs::path out = fs::absolute(o.out).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();
  SaveOptions options{.family = o.family, .dtype = parse_dtype(o.dtype), .token_ids = read_token_ids(source)};
  if (!o.max_shard_size.empty()) options.max_shard_bytes = shard_bytes(o.max_shard_size);
  check_family(o.family);
  // What it is already is what it stays, where other families could say it too.
  if (options.family.empty()) options.family = read_model_type(source);
  if (o.family.empty() && options.family == kOwnType) options.family.clear();
  const ArchSpec before = read_model_spec(source);
  const std::optional<Conversion> conversion = conversion_of(o, before);
  std::vector<std::string> reasons;
  const std::string type =
      model_config(conversion ? conversion->spec : before, options.family, &reasons).at("model_type");
  if (!o.family.empty() && type != o.family)
    throw InputError("--family", "can't express the model: " + reasons.front(), "leave it out, or name another one");

  const fs::path part = part_folder(out, o.overwrite, source);
  const Begun begun{part};
  std::optional<ConversionReceipt> receipt;
  std::unique_ptr<Model> model;
  if (conversion) {
    Converted converted = run_conversion(*conversion, source, o.conversion, globals, part);
    if (converted.interrupted) return 130;
    model = std::move(converted.model);
    receipt = std::move(converted.receipt);
    write_text(part / "receipt.json", to_json(*receipt).dump(2) + "\n");
    write_text(part / "receipt.txt", to_text(*receipt));
  } else {
    model = load_model(source);
  }
  save_model(*model, part, options);
  copy_companions(source, part);
  end_recovery(part, receipt && receipt->recovery);
  fs::path previous = out;
  previous += ".previous";
  replace_folder_atomic(part, out, previous);
  fs::remove_all(previous);

  uintmax_t bytes = 0;
  Json files = Json::array();
  for (const auto& entry : fs::recursive_directory_iterator(out)) {
    if (!entry.is_regular_file()) continue;
    bytes += entry.file_size();
    files.push_back(entry.path().lexically_relative(out).string());
  }
  std::sort(files.begin(), files.end());
  const bool explain = type == kOwnType && o.family.empty();
  if (globals.json) {
    Json document = {
        {"out", out.string()}, {"model_type", type}, {"dtype", o.dtype}, {"bytes", bytes}, {"files", files}};
    if (explain) document["reasons"] = reasons;
    if (receipt) document.update(to_json(*receipt));
    print_json(document);
    return 0;
  }
  if (receipt) fmt::print("{}\n", to_text(*receipt));
  fmt::print("{}: {}, {}, {:.1f} MB in {} files\n", out.string(), type, o.dtype, static_cast<double>(bytes) * 1e-6,
             files.size());
  if (explain) {
    fmt::print("no family of Hugging Face can express it:\n");
    for (const std::string& reason : reasons) fmt::print("  {}\n", reason);
  }
  return 0;
}

}  // namespace

void register_convert(Registry& registry) {
  auto o = std::make_shared<Options>();
  Globals& globals = registry.globals;
  CLI::App* sub = registry.add(
      "convert", "write a model folder again: another architecture, another family's form, type or size of files",
      [o, &globals] { return run(*o, globals); });
  sub->add_option("MODEL", o->model, "model folder")->required();
  sub->add_option("--out", o->out, "folder to write")->required();
  sub->add_option("--dtype", o->dtype, "type of the weights: f32, f16 or bf16")->capture_default_str();
  sub->add_option("--family", o->family,
                  "model_type to write, or transept for our own form (default: what it is, or the first that fits)");
  sub->add_option("--max-shard-size", o->max_shard_size, "largest file of weights, as 5GB (default: one file)");
  sub->add_flag("--overwrite", o->overwrite, "replace the model folder at --out");
  o->kv_heads_given = add_kv_heads_options(sub, o->kv_heads);
  add_conversion_options(sub, o->conversion);
}

}  // namespace transept
