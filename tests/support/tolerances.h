// Every bound that a test uses, each with its reason. A bound is relative: see compare.h for what it multiplies.
#pragma once

namespace transept::tolerance {

// Central differences in double with h = 1e-5 * max(1, |x|): truncation h^2 f''' / 6 is about 1e-10, cancellation eps /
// h about 1e-11; sums over some hundred terms and the curvature of softmax leave three digits of room.
inline constexpr double kGradcheck = 1e-6;

// float32 kernels against double references: eps(float32) = 1.2e-7 times the square root of the longest sum (2,048
// terms: 45), and as much again for the polynomial exponentials and the chain of two or three sums in attention and
// norms.
inline constexpr double kKernel = 2e-5;

// float32 model logits against transformers: two implementations with other orders of summation, layers deep.
inline constexpr double kLogits = 2e-4;

// The same where they were published with five digits behind the point.
inline constexpr double kPrinted = 1e-3;

// Losses and weights after 20 AdamW steps against PyTorch: the update divides by sqrt(v), which magnifies rounding
// where gradients are small.
inline constexpr double kTraining = 1e-4;

// Double against closed forms of a few operations: eps(double) = 2.2e-16 times some tens.
inline constexpr double kDouble = 1e-14;

// LayerNorm of values 1,000 away from zero with a spread of 1: the inputs are exact, but their mean is rounded to
// eps(float32) * 1,000.
inline constexpr double kLayerNormFarFromZero = 2e-4;

// exp in float, in ULP: 0.5 for the last addition, 0.35 for the rounded reduced argument (half an ulp of ln(2) / 2, and
// once more without fused multiply-add), 0.1 for the polynomial (3.1e-9 of 6e-8) and its last steps.
inline constexpr double kExpUlp = 1.5;

// 1 / (1 + exp(-x)): the error of exp and half an ULP each for sum and quotient, each twice that where the result falls
// just under a power of two.
inline constexpr double kSigmoidUlp = 3;

// tanh, at most 1: 1.2e-8 for the fraction, half an ULP of its size each for the two sums' last steps, their roundings
// before, the product and the quotient: 6 units of 2^-24 = 6.0e-8.
inline constexpr double kTanhAbsolute = 4e-7;

// Normal distribution and density, at most 1: 2.5 units of 2^-24 = 6.0e-8: near x = 0 the polynomial's coefficients add
// up to 1/2, their rounding and that of its last two steps to 1.5 units, and the difference from 1 to half a unit.
inline constexpr double kNormalAbsolute = 1.5e-7;

// The lower tail down to x = -13 in ULP: x^2 / 2 is at most 84.5, and the rounding of x^2 alone leaves half an ulp of
// 128 in the exponent, 64 * eps(float32), that is 64 ULP of the result.
inline constexpr double kNormalTailUlp = 70;

// Double against a few operations of another program in float32, its power function among them: some tens of
// eps(float32) = 1.2e-7 / 2.
inline constexpr double kFloat = 1e-6;

// Sums of up to 100,003 positive doubles in two orders: eps(double) = 2.2e-16 times the square root of the length
// (316), and some.
inline constexpr double kDoubleSum = 1e-13;

// Activations at |x| >= 50, where each has met its asymptote: 50 sigmoid(-50) = 1e-20, and the like.
inline constexpr double kVanishingTail = 1e-18;

// Differences of a float32 loss along a step of 0.004: eps * loss / h is about 1e-4 beside slopes of 0.05 and more;
// kinks and curvature add up to a percent.
inline constexpr double kFloatDifference = 0.02;

// A sum of squared residues of float32 weights, computed in double: rounding the result to float32 adds about
// eps^2 |weights|^2, and the residue is a hundredth of that square or more.
inline constexpr double kMergedError = 1e-6;

// A mean cross-entropy, in nats, against PyTorch's or against another order of the same sums: logits of size 5 differ
// by a few eps(float32), and the mean evens most of that out.
inline constexpr double kLoss = 2e-5;
// The same for exp(loss) of a loss of about 4.4: kLoss times the perplexity of 80.
inline constexpr double kPerplexity = 2e-3;

// Powers and roots of quantities up to 1e40 in double: eps(double) = 2.2e-16 times the logarithm (92) that a power
// multiplies, and some operations of that.
inline constexpr double kClosedForm = 1e-12;

// The same where E is taken from a loss first: the reducible part is a tenth of the loss, and a power of 1 / 0.35 and
// another by alpha / beta magnify what that leaves.
inline constexpr double kInvertedLoss = 1e-10;

// Figures that were published with three digits.
inline constexpr double kThreeDigits = 5e-3;

// Exponents that were published with two digits (0.005 / 0.49), drawn over up to four decades of compute.
inline constexpr double kRoundedExponent = 0.1;

// Rows of Hoffmann et al., table A3, by the constants of the paper's TeX source: the table was made from others, with
// a = 0.4583 by its own first and last row where the constants give 0.4565. At 1T parameters that makes 15 %.
inline constexpr double kTableA3 = 0.16;

// A law fitted to runs that it made itself, without noise: the optimizer stops where the sum of squares no longer falls
// by 1e-12 of itself; constants then agree to its root or better.
inline constexpr double kExactFit = 1e-6;

// An estimate beside the truth, in standard errors: 3 leave 0.3 % to chance for one figure, and the seed is fixed.
inline constexpr double kStandardErrors = 3;

// Errors over 200 resamples of one draw of noise beside the published ones, which come from other runs with noise of
// another form: of the same order.
inline constexpr double kErrorFactor = 3;

// The mean entropy of the softmax of 4,096 normal scores over 64 queries of 512 elements beside its limit for many
// keys: a query's is off by half the spread of its squared length, sqrt(2 / 512) / 2 = 0.03, and as much for its keys;
// the mean over 64 by an eighth of that, 0.005. Four times so much.
inline constexpr double kManyKeys = 0.02;
// The same for the median norm of the gradient behind it, whose square has terms with a heavy tail: one query's is off
// by sqrt(3 e^4 / 4096) = 0.2, so its root by 0.1, and the median lies a few hundredths below the mean.
inline constexpr double kManyKeysGradient = 0.1;

}  // namespace transept::tolerance
