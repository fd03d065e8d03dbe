// One walk over the keys of a family's config.json that reads a spec from it or writes it from a spec, so that import
// and export are one table.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/problem.h"
#include "spec/arch_spec.h"

namespace transept {

// Thrown while writing: the family has no way to say it.
struct Inexpressible {
  std::string reason;
};

class ConfigMap {
 public:
  // Reads; what is missing, of the wrong type or not supported becomes a problem at `where`: KEY.
  ConfigMap(const Json& document, std::string where, Problems& problems);
  // Writes into an object.
  explicit ConfigMap(Json& out) : out_(&out) {}

  bool reading() const { return out_ == nullptr; }

  // A key whose value is the variable's. Reading: an absent or null key gives the fallback, or is a problem where there
  // is none.
  template <class T>
  void operator()(const char* key, T& value, std::type_identity_t<std::optional<T>> fallback = std::nullopt) {
    if (reading()) {
      read(key, value, std::move(fallback));
    } else {
      write(key, value);
    }
  }

  // A key whose value is the name of one of the choices; of two names of one value the first is written.
  template <class E>
  using Choices = std::vector<std::pair<const char*, E>>;
  template <class E>
  void choice(const char* key, E& value, const Choices<E>& choices, std::optional<std::string> fallback = {}) {
    if (!reading()) {
      for (const auto& [name, v] : choices) {
        if (v == value) return write(key, std::string(name));
      }
      throw Inexpressible{std::string(key) + " has no name for what the spec says"};
    }
    std::string name, known;
    read(key, name, std::move(fallback));
    for (const auto& [n, v] : choices) {
      if (name == n) {
        value = v;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(n);
    }
    if (!name.empty()) problem(key, "\"" + name + "\" is not supported", "supported are " + known);
  }

  // A key whose value is an object: `body` walks its keys with a map of their own. An absent or null one is empty.
  template <class F>
  void group(const char* key, const F& body) {
    Json object = reading() ? value(key) : Json::object();
    if (object.is_null()) object = Json::object();
    if (!object.is_object()) return problem(key, "is " + object.dump() + ", not an object");
    if (reading()) {
      ConfigMap inside(object, where_ + ": " + key, *problems_);
      body(inside);
      inside.finish();
    } else {
      ConfigMap inside(object);
      body(inside);
      write(key, object);
    }
  }

  // Reading: a key that must have this value when it is there, since another one changes the numbers.
  void require(const char* key, const Json& allowed, const char* why);
  // Reading: keys that do not change the numbers, or that were looked at by other means.
  void ignore(std::initializer_list<const char*> keys);
  void problem(const std::string& key, const std::string& what, const std::string& mend = {});

  // Reading: the value, or null when absent; the key counts as understood.
  const Json& value(const char* key);
  bool has(const char* key) const { return reading() && document_->contains(key); }
  // Writing.
  void write(const char* key, const Json& value);
  // Writing, when the family can't say what holds.
  void demand(bool holds, const char* reason) const {
    if (!reading() && !holds) throw Inexpressible{reason};
  }

  // The variant's kind K: chosen when reading, demanded when writing.
  template <class K, class... Ks>
  K& kind(std::variant<Ks...>& any, const char* what) {
    if (reading()) any = K{};
    if (!std::holds_alternative<K>(any)) throw Inexpressible{std::string(what) + " is not " + std::string(K::kName)};
    return std::get<K>(any);
  }

  // What a stack's layers are alike in: the first one when writing.
  LayerSpec common(const StackSpec& stack) const { return reading() ? LayerSpec{} : stack.layers.front(); }
  // Their number; reading fills the stack with as many layers like `layer`, and gives it their position and norm.
  void layers(const char* key, StackSpec& stack, const LayerSpec& layer, std::optional<int64_t> fallback = {});

  // Reading: every key that nobody asked for and that could change the numbers (its value is neither null nor false)
  // becomes a problem.
  void finish();
  const std::string& where() const { return where_; }
  Problems& problems() { return *problems_; }

 private:
  const Json* find(const char* key);
  template <class T>
  void read_as(const char* key, T& value, const std::optional<T>& fallback, bool (*is)(const Json&), const char* noun);
  void read(const char* key, int64_t& value, std::optional<int64_t> fallback);
  void read(const char* key, double& value, std::optional<double> fallback);
  void read(const char* key, bool& value, std::optional<bool> fallback);
  void read(const char* key, std::string& value, std::optional<std::string> fallback);

  const Json* document_ = nullptr;
  std::string where_;
  Problems* problems_ = nullptr;
  std::set<std::string> known_;
  Json* out_ = nullptr;
};

}  // namespace transept
