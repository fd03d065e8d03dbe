// Every bound that a test uses, each with its reason. A bound is relative: see compare.h for what it multiplies.
#pragma once

namespace transept::tolerance {

// Central differences in double with h = 1e-5 * max(1, |x|): truncation h^2 f''' / 6 is about 1e-10, cancellation eps / h about 1e-11; sums
// over some hundred terms and the curvature of softmax leave three digits of room.
inline constexpr double kGradcheck = 1e-6;

// float32 kernels against double references: eps(float32) = 1.2e-7 times the square root of the longest sum (2,048 terms: 45), and as much again
// for the polynomial exponentials and the chain of two or three sums in attention and norms.
inline constexpr double kKernel = 2e-5;

// float32 model logits against transformers: two implementations with other orders of summation, layers deep.
inline constexpr double kLogits = 2e-4;

// Losses and weights after 20 AdamW steps against PyTorch: the update divides by sqrt(v), which magnifies rounding where gradients are small.
inline constexpr double kTraining = 1e-4;

}  // namespace transept::tolerance
