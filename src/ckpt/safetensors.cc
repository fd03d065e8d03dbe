#include "ckpt/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_set>

#include "base/check.h"
#include "base/json.h"
#include "base/problem.h"

namespace transept {
namespace fs = std::filesystem;
namespace {

static_assert(std::endian::native == std::endian::little, "the container is little-endian and is mapped as it stands");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference implementation
constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;
constexpr size_t kMaxRank = 16;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::string_view kSingleName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr const char* kMend = "the file is damaged or no safetensors file; get it again";

// A name from a file, short enough for a message.
std::string shown(std::string_view name) {
  constexpr size_t kMost = 120;
  return "tensor \"" + std::string(name.substr(0, kMost)) + (name.size() > kMost ? "...\"" : "\"");
}

// Both JSON documents here are shallow and of known form. They are read event by event, so that whatever does not
// belong is refused where it stands, before it takes memory, and so that a hundred thousand names cost no quadratic
// time.
class ShallowReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ShallowReader(std::string where) : where_(std::move(where)) {}

  void parse(const char* text, size_t bytes) {
    nlohmann::json::sax_parse(text, text + bytes, this);
    if (!done_) refuse("is no JSON object");
  }

  bool null() override { return refuse("holds a null where it may not"); }
  bool boolean(bool) override { return refuse("holds a truth value where it may not"); }
  bool number_integer(number_integer_t) override { return refuse("holds a negative number where it may not"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("holds a number where it may not"); }
  bool number_float(number_float_t, const string_t&) override {
    return refuse("holds a number that is not a whole one below 2^64");
  }
  bool string(string_t&) override { return refuse("holds a string where it may not"); }
  bool binary(binary_t&) override { return refuse("holds binary data"); }
  bool start_array(size_t) override { return refuse("holds a list where it may not"); }
  bool end_array() override { return true; }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse("is not valid JSON (at byte " + std::to_string(position) + ")");
  }

 protected:
  virtual std::string subject() const { return {}; }  // what is being read, for messages

  [[noreturn]] bool refuse(const std::string& what) const {
    const std::string of = subject();
    throw InputError(where_, of.empty() ? what : of + " " + what, kMend);
  }
  bool done_ = false;

 private:
  std::string where_;
};

struct HeaderEntry {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

class HeaderReader : public ShallowReader {
 public:
  using ShallowReader::ShallowReader;
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;

  bool start_object(size_t) override {
    if (depth_ == 2 || in_list_) refuse("nests an object where it may not");
    ++depth_;
    if (depth_ == 2) {
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
      field_.clear();
    }
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      named_ = true;
      name_ = text;
      if (!names_.insert(text).second) refuse("stands twice in the header");
    } else {
      field_ = text;
      if (in_metadata()) {
        if (metadata.contains(text)) refuse("has the key \"" + text.substr(0, 120) + "\" twice");
      } else if ((text == "dtype" && dtype_) || (text == "shape" && shape_) || (text == "data_offsets" && offsets_)) {
        refuse("has the field \"" + text + "\" twice");
      } else if (text != "dtype" && text != "shape" && text != "data_offsets") {
        refuse("has an unknown field \"" + text.substr(0, 120) + "\"");
      }
    }
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && !in_list_ && in_metadata()) {
      metadata.emplace(field_, text);
      return true;
    }
    if (depth_ != 2 || in_list_ || field_ != "dtype") refuse("holds a string where it may not");
    dtype_ = dtype_from_safetensors(text);
    if (!dtype_) refuse("has the unknown element type \"" + text.substr(0, 40) + "\"");
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_list_ || in_metadata() || field_ == "dtype") refuse("holds a list where it may not");
    in_list_ = true;
    (field_ == "shape" ? shape_ : offsets_).emplace();
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) refuse("holds a number where it may not");
    std::vector<uint64_t>& list = field_ == "shape" ? *shape_ : *offsets_;
    if (list.size() == kMaxRank) refuse("has more than " + std::to_string(kMaxRank) + " values in \"" + field_ + "\"");
    list.push_back(value);
    return true;
  }
  // The library reports a number as unsigned whenever it has no sign.
  bool number_integer(number_integer_t) override { return refuse("has a negative value in \"" + field_ + "\""); }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata()) finish_entry();
    if (--depth_ == 0) done_ = true;
    return true;
  }

 protected:
  std::string subject() const override {
    if (!named_) return {};
    return in_metadata() ? std::string(kMetadataKey) : shown(name_);
  }

 private:
  bool in_metadata() const { return name_ == kMetadataKey; }

  void finish_entry() {
    if (!dtype_ || !shape_ || !offsets_) refuse("lacks one of dtype, shape and data_offsets");
    if (offsets_->size() != 2) refuse("has data_offsets that are not two numbers");
    uint64_t bytes = static_cast<uint64_t>(dtype_bytes(*dtype_));
    std::vector<int64_t> shape;
    for (const uint64_t extent : *shape_) {
      if (extent > INT64_MAX || __builtin_mul_overflow(bytes, extent, &bytes))
        refuse("has a shape of more elements than can be counted");
      shape.push_back(static_cast<int64_t>(extent));
    }
    const uint64_t begin = (*offsets_)[0], end = (*offsets_)[1];
    if (begin > end) refuse("ends before it begins");
    if (end - begin != bytes) {
      refuse("takes " + std::to_string(bytes) + " bytes by its shape and " + std::to_string(end - begin) +
             " by its offsets");
    }
    entries.push_back({name_, *dtype_, std::move(shape), begin, end});
  }

  int depth_ = 0;
  bool in_list_ = false, named_ = false;
  std::string name_, field_;
  std::unordered_set<std::string> names_;
  std::optional<DType> dtype_;
  std::optional<std::vector<uint64_t>> shape_, offsets_;
};

// {"metadata": {anything flat}, "weight_map": {tensor: file}}
class IndexReader : public ShallowReader {
 public:
  using ShallowReader::ShallowReader;
  std::map<std::string, std::string> weight_map;
  bool seen = false;

  bool start_object(size_t) override {
    if (++depth_ > 2 || (depth_ == 2 && group_ != "weight_map" && group_ != "metadata"))
      refuse("nests an object where it may not");
    return true;
  }
  bool end_object() override {
    if (--depth_ == 0) done_ = true;
    return true;
  }
  bool key(string_t& text) override {
    if (depth_ == 1) {
      group_ = text;
      if (text == "weight_map") {
        if (seen) refuse("has two weight maps");
        seen = true;
      }
    } else {
      name_ = text;
      if (mapping() && weight_map.contains(text)) refuse("names " + shown(text) + " twice");
    }
    return true;
  }
  bool string(string_t& text) override {
    if (mapping()) weight_map.emplace(name_, text);
    return mapping() || scalar();
  }
  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }

 private:
  bool mapping() const { return depth_ == 2 && group_ == "weight_map"; }
  bool scalar() const {
    if (mapping() || depth_ == 0 || group_ == "weight_map") refuse("has a weight map that is not from names to files");
    return true;
  }
  int depth_ = 0;
  std::string group_, name_;
};

bool by_name(const StoredTensor* a, std::string_view name) { return a->name < name; }

float half_to_float(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1.0p-24f;
  return sign != 0 ? -subnormal : subnormal;
}

template <class T, class Convert>
void convert_all(std::span<const std::byte> bytes, std::span<float> out, const Convert& convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path) : path_(path), map_(path) {
  const std::span<const std::byte> all = map_.bytes();
  const std::string where = path.string();
  if (all.size() < 8)
    throw InputError(where, "has " + std::to_string(all.size()) + " bytes, too few for a safetensors header", kMend);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, all.data(), 8);
  if (header_bytes > all.size() - 8) {
    throw InputError(where,
                     "says its header has " + std::to_string(header_bytes) + " bytes, but only " +
                         std::to_string(all.size() - 8) + " follow",
                     kMend);
  }
  if (header_bytes > kMaxHeaderBytes)
    throw InputError(where, "has a header of more than " + std::to_string(kMaxHeaderBytes) + " bytes", kMend);
  HeaderReader header(where);
  header.parse(reinterpret_cast<const char*>(all.data()) + 8, header_bytes);
  metadata_ = std::move(header.metadata);

  const std::span<const std::byte> data = all.subspan(8 + header_bytes);
  std::vector<HeaderEntry>& entries = header.entries;
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t expected = 0;
  for (HeaderEntry& e : entries) {
    if (e.begin != expected) {
      throw InputError(where,
                       shown(e.name) + " begins at byte " + std::to_string(e.begin) + " of the data, where " +
                           std::to_string(expected) + " was due",
                       kMend);
    }
    if (e.end > data.size()) {
      throw InputError(where,
                       shown(e.name) + " ends at byte " + std::to_string(e.end) + " of " + std::to_string(data.size()) +
                           " bytes of data",
                       kMend);
    }
    expected = e.end;
    tensors_.push_back({std::move(e.name), e.dtype, std::move(e.shape), data.subspan(e.begin, e.end - e.begin)});
  }
  if (expected != data.size()) {
    throw InputError(where, "holds " + std::to_string(data.size() - expected) + " bytes that belong to no tensor",
                     kMend);
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                   [](const StoredTensor& t, std::string_view n) { return t.name < n; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

bool SafetensorsCheckpoint::present(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kSingleName, ignored) || fs::exists(folder / kIndexName, ignored);
}

SafetensorsCheckpoint::SafetensorsCheckpoint(const fs::path& file_or_folder) : path_(file_or_folder) {
  std::error_code ignored;
  const bool folder = fs::is_directory(path_, ignored);
  if (!folder || fs::exists(path_ / kSingleName, ignored)) {
    files_.push_back(std::make_unique<SafetensorsFile>(folder ? path_ / kSingleName : path_));
  } else if (fs::exists(path_ / kIndexName, ignored)) {
    const fs::path index_path = path_ / kIndexName;
    const std::string where = index_path.string();
    IndexReader index(where);
    const std::string text = read_file(index_path, kMaxIndexBytes);
    index.parse(text.data(), text.size());
    if (index.weight_map.empty())
      throw InputError(where, "has no weight_map, or an empty one", "get the checkpoint again");

    std::map<std::string, const SafetensorsFile*> shards;
    for (const auto& [tensor, file] : index.weight_map) {
      if (shards.contains(file)) continue;
      const fs::path plain(file);
      if (file.empty() || file == "." || file == ".." || plain.filename() != plain ||
          file.find('\0') != std::string::npos) {
        throw InputError(where, shown(tensor) + " is said to stand in \"" + file.substr(0, 120) +
                                    "\", which is no file of this folder");
      }
      if (!fs::exists(path_ / plain, ignored)) {
        throw InputError((path_ / plain).string(),
                         "this shard is missing; the index needs it, for one, for " + shown(tensor), "get it again");
      }
      files_.push_back(std::make_unique<SafetensorsFile>(path_ / plain));
      shards.emplace(file, files_.back().get());
    }
    for (const auto& [tensor, file] : index.weight_map) {
      if (shards.at(file)->find(tensor) == nullptr) {
        throw InputError((path_ / file).string(), shown(tensor) + " is not in this shard, though the index says so",
                         "get the checkpoint again");
      }
    }
    for (const auto& [file, shard] : shards) {
      for (const StoredTensor& t : shard->tensors()) {
        const auto at = index.weight_map.find(t.name);
        if (at == index.weight_map.end() || at->second != file) {
          throw InputError((path_ / file).string(),
                           shown(t.name) + " stands in this shard, but not according to the index",
                           "get the checkpoint again");
        }
      }
    }
  } else {
    throw InputError(path_.string(), "holds neither " + std::string(kSingleName) + " nor " + std::string(kIndexName),
                     "name a checkpoint folder");
  }
  for (const auto& file : files_) {
    for (const StoredTensor& t : file->tensors()) tensors_.push_back(&t);
  }
  std::sort(tensors_.begin(), tensors_.end(),
            [](const StoredTensor* a, const StoredTensor* b) { return a->name < b->name; });
  metadata_ = files_.front()->metadata();
}

const StoredTensor* SafetensorsCheckpoint::find(std::string_view name) const {
  const auto at = std::lower_bound(tensors_.begin(), tensors_.end(), name, by_name);
  return at != tensors_.end() && (*at)->name == name ? *at : nullptr;
}

void SafetensorsCheckpoint::read_f32(std::string_view name, std::span<float> out) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr)
    throw InputError(path_.string(), shown(name) + " is missing", "the checkpoint does not belong to this model");
  transept::read_f32(*tensor, out, path_.string());
}

void read_f32(const StoredTensor& tensor, std::span<float> out, const std::string& where) {
  if (static_cast<uint64_t>(tensor.elements()) != out.size()) {
    throw InputError(where,
                     shown(tensor.name) + " has " + std::to_string(tensor.elements()) + " elements instead of " +
                         std::to_string(out.size()),
                     "the checkpoint does not belong to this model");
  }
  switch (tensor.dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return;
    case DType::kF16:
      return convert_all<uint16_t>(tensor.bytes, out, half_to_float);
    case DType::kBF16:
      return convert_all<uint16_t>(tensor.bytes, out,
                                   [](uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); });
    case DType::kF64:
      return convert_all<double>(tensor.bytes, out, [](double d) { return static_cast<float>(d); });
    default:
      throw InputError(where, shown(tensor.name) + " is of type " + std::string(dtype_name(tensor.dtype)) +
                                  ", not of floating point");
  }
}

void write_safetensors(const fs::path& path, std::vector<TensorToStore> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorToStore& a, const TensorToStore& b) {
    const int64_t wide_a = dtype_bytes(a.dtype), wide_b = dtype_bytes(b.dtype);
    return wide_a != wide_b ? wide_a > wide_b : a.name < b.name;
  });
  const auto bytes_of = [](const TensorToStore& t) {
    uint64_t bytes = static_cast<uint64_t>(dtype_bytes(t.dtype));
    for (const int64_t extent : t.shape)
      TRANSEPT_CHECK(extent >= 0 && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes));
    return bytes;
  };
  std::set<std::string_view> names{kMetadataKey};
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::string text = header.dump();
  text.pop_back();
  uint64_t at = 0;
  for (const TensorToStore& t : tensors) {
    TRANSEPT_CHECK(names.insert(t.name).second);
    const uint64_t end = at + bytes_of(t);
    const Json entry{{"dtype", safetensors_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {at, end}}};
    if (text.size() > 1) text += ',';
    text += Json(t.name).dump();
    text += ':';
    text += entry.dump();
    at = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t header_bytes = text.size();

  FileWriter out(path);
  out.write(&header_bytes, sizeof header_bytes);
  out.write(text);
  for (const TensorToStore& t : tensors) out.write(t.data, bytes_of(t));
  out.close();
}

}  // namespace transept
