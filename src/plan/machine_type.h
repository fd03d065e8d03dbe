// A type of machine that trains or serves a model: one GPU, one accelerator chip, or the processors of one server. What
// a roofline needs of it (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009): operations a second, bytes a
// second; and its memory, its link to others, its power and its price.
//
// A table is part of the program (machines.json); a file of the same form adds to it: one machine, or a list of them.
// Figures of the table are those of data sheets: dense, never the doubled ones of structured sparsity; memory in powers
// of two; prices are rounded on-demand prices of public clouds in 2025, to be replaced by one's own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace transept {

struct MachineType {
  std::string name;
  std::string description;
  std::string kind;  // "gpu", "accelerator" or "cpu"
  std::string note;  // where a figure needs one
  // By number format of the operands: f32, tf32, bf16, f16, f8, i8; at least one of the first four.
  std::map<std::string, double> flops_per_second;
  int64_t memory_bytes = 0;
  double memory_bytes_per_second = 0;
  // Measured rates of reading a working set again and again, by its size, ascending: what a cache holds is read faster
  // than memory. Empty: memory_bytes_per_second at every size.
  struct ReadRate {
    int64_t working_set_bytes = 0;
    double bytes_per_second = 0;
  };
  std::vector<ReadRate> read_rates;
  // Measured rates of products of one row, by format of the weights, which a cache holds: a row may be too little work
  // for the peak. Empty: the peak for any number of rows.
  std::map<std::string, double> row_flops_per_second;
  double layer_seconds = 0;                  // that a layer of a decode step takes beside its arithmetic; measured
  double interconnect_bytes_per_second = 0;  // to other machines of its kind, both directions together; 0: none known
  double usd_per_hour = 0;                   // 0: not known
  double watts = 0;                          // 0: not known

  // The rate of operations on weights of that dtype (f32, f16, bf16), and the format it is of: the dtype's own, or else
  // the next wider one that there is, or else the nearest narrower one.
  struct Peak {
    std::string dtype;
    double flops_per_second = 0;
  };
  Peak peak(const std::string& dtype) const;
  // That peak, and no more than each of the rows allows.
  double reachable_flops_per_second(const std::string& dtype, double rows) const;
  // Of mixed-precision training: bf16, or else f16, tf32, f32.
  Peak training_peak() const;

  // Of reading so many bytes again and again: read_rates between its sizes by linear interpolation of the logarithms,
  // beyond them the nearest.
  double read_bytes_per_second(double working_set_bytes) const;
};

// The table, in its order.
const std::vector<MachineType>& machine_types();

// InputError with every problem: unknown keys, wrong types, values out of range, each with its path. `where` names the
// document.
std::vector<MachineType> read_machine_types(const Json& document, const std::string& where);

// The machine that an argument names: one of the table; FILE.json with one machine; or FILE.json:NAME.
MachineType find_machine_type(const std::string& argument);

// Keys as in a file; what is not known is left out.
Json to_json(const MachineType& machine);

}  // namespace transept
