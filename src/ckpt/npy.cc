#include "ckpt/npy.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/problem.h"

namespace transept {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they stand in memory");

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kMaxRank = 32;  // NumPy's own limit in version 1

struct Descr {
  std::string_view text;
  DType dtype;
};
constexpr Descr kDescrs[] = {{"<f4", DType::kF32}, {"<f8", DType::kF64}, {"<i4", DType::kI32}, {"<i8", DType::kI64}};

void write(const std::filesystem::path& path, std::string_view descr, std::span<const int64_t> shape,
           const void* values, size_t count, size_t bytes) {
  uint64_t product = 1;
  std::string extents;
  for (const int64_t extent : shape) {
    TRANSEPT_CHECK(extent >= 0);
    product *= static_cast<uint64_t>(extent);
    extents += std::to_string(extent) + (shape.size() == 1 ? "," : extents.size() > 0 || shape.size() > 1 ? ", " : "");
  }
  TRANSEPT_CHECK(product == count);
  if (shape.size() > 1) extents.resize(extents.size() - 2);
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (" + extents + "), }";
  const size_t prefix = kMagic.size() + 2;
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  TRANSEPT_CHECK(header.size() <= 65535);
  const uint16_t header_bytes = static_cast<uint16_t>(header.size());
  FileWriter out(path);
  out.write(kMagic);
  out.write(&header_bytes, 2);
  out.write(header);
  out.write(values, bytes);
  out.close();
}

// The header is a Python dictionary literal of three known keys; only that much of Python is read.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> shape;

  void parse() {
    bool order = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !dtype) {
        const std::string_view descr = quoted();
        for (const Descr& d : kDescrs) {
          if (d.text == descr) dtype = d.dtype;
        }
        if (!dtype)
          refuse("holds the element type " + std::string(descr.substr(0, 20)) +
                 "; float32, float64, int32 and int64 are read");
      } else if (key == "fortran_order" && !order) {
        order = true;
        if (!word("False")) refuse("is not in C order");
      } else if (key == "shape" && !shape) {
        tuple();
      } else {
        refuse("has an unknown or repeated header key");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size() || !dtype || !shape || !order) refuse("has a malformed header");
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(where_, what, "write it again with numpy.save");
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse("has a malformed header");
  }
  bool word(std::string_view w) {
    skip();
    if (text_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }
  std::string_view quoted() {
    expect('\'');
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) refuse("has a malformed header");
    const std::string_view s = text_.substr(at_, end - at_);
    at_ = end + 1;
    return s;
  }
  void tuple() {
    shape.emplace();
    expect('(');
    while (!accept(')')) {
      skip();
      const size_t begin = at_;
      int64_t value = 0;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
            __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
          refuse("has a shape that cannot be counted");
        }
      }
      if (at_ == begin) refuse("has a shape that is not of whole numbers");
      if (shape->size() == kMaxRank) refuse("has too many dimensions");
      shape->push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

template <class To, class From>
std::vector<To> converted(const std::string& bytes) {
  std::vector<To> out(bytes.size() / sizeof(From));
  for (size_t i = 0; i < out.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      if (!(std::abs(static_cast<double>(value)) < 0x1.0p63))
        throw InputError("npy", "holds a value that is no 64-bit integer");
    }
    out[i] = static_cast<To>(value);
  }
  return out;
}

template <class To>
std::vector<To> converted(const NpyArray& a) {
  switch (a.dtype) {
    case DType::kF32:
      return converted<To, float>(a.bytes);
    case DType::kF64:
      return converted<To, double>(a.bytes);
    case DType::kI32:
      return converted<To, int32_t>(a.bytes);
    default:
      return converted<To, int64_t>(a.bytes);
  }
}

}  // namespace

void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, std::span<const float> values) {
  write(path, "<f4", shape, values.data(), values.size(), values.size_bytes());
}
void write_npy(const std::filesystem::path& path, std::span<const int64_t> shape, std::span<const int64_t> values) {
  write(path, "<i8", shape, values.data(), values.size(), values.size_bytes());
}

std::vector<float> NpyArray::as_f32() const { return converted<float>(*this); }
std::vector<double> NpyArray::as_f64() const { return converted<double>(*this); }
std::vector<int64_t> NpyArray::as_i64() const { return converted<int64_t>(*this); }

NpyArray read_npy(const std::filesystem::path& path, uint64_t max_bytes) {
  std::string file = read_file(path, max_bytes);
  const std::string where = path.string();
  const size_t prefix = kMagic.size() + 2;
  if (file.size() < prefix || std::string_view(file).substr(0, kMagic.size()) != kMagic) {
    throw InputError(where, "is no .npy file of version 1.0", "write it with numpy.save");
  }
  uint16_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + kMagic.size(), 2);
  if (header_bytes > file.size() - prefix) throw InputError(where, "ends inside its header", "get it again");
  HeaderParser header(std::string_view(file).substr(prefix, header_bytes), where);
  header.parse();
  uint64_t bytes = static_cast<uint64_t>(dtype_bytes(*header.dtype));
  for (const int64_t extent : *header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes))
      throw InputError(where, "has a shape that cannot be counted");
  }
  const uint64_t held = file.size() - prefix - header_bytes;
  if (bytes != held) {
    throw InputError(where, "holds " + std::to_string(held) + " bytes of values instead of " + std::to_string(bytes),
                     "get it again");
  }
  return {*header.dtype, std::move(*header.shape), file.substr(prefix + header_bytes)};
}

}  // namespace transept
