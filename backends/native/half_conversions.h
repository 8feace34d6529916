// Conversions of float16 for processors that have no instruction for them (x86-64 before F16C). LLVM calls functions of
// the compiler's library there; modules get them along, because code needs nothing from outside.
#pragma once

namespace weft::backend::native {

/// The functions __extendhfsf2 and __truncsfhf2, for modules in which nothing else has these names.
///
///   extend(h):  m = h without its sign
///               r = m is infinite or NaN ? m << 13, with the exponent of infinity and quiet
///                                        : bits(float(m << 13) * 2^112), which is exact, for subnormal numbers too
///   trunc(f):   a = |f|
///               r = a is NaN    ? quiet, with the high bits of its payload
///                 : a >= 65520  ? infinity
///                 : a >= 2^-14  ? exponent less 112, and 13 bits rounded off to even
///                               : bits(a + 0.5) - bits(0.5): the sum has the same last place as subnormal numbers
inline constexpr const char* kHalfConversions = R"(
define hidden float @__extendhfsf2(half %h) {
  %bits = bitcast half %h to i16
  %word = zext i16 %bits to i32
  %top = and i32 %word, 32768
  %sign = shl i32 %top, 16
  %m = and i32 %word, 32767
  %shifted = shl i32 %m, 13
  %small = bitcast i32 %shifted to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %is_special = icmp uge i32 %m, 31744
  %is_nan = icmp ugt i32 %m, 31744
  %quiet = select i1 %is_nan, i32 2143289344, i32 2139095040
  %special = or i32 %shifted, %quiet
  %r = select i1 %is_special, i32 %special, i32 %finite
  %signed = or i32 %r, %sign
  %f = bitcast i32 %signed to float
  ret float %f
}
define hidden half @__truncsfhf2(float %f) {
  %bits = bitcast float %f to i32
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %a = and i32 %bits, 2147483647
  %payload = lshr i32 %a, 13
  %low = and i32 %payload, 1023
  %nan = or i32 %low, 32256
  %less = sub i32 %a, 939524096
  %cut = lshr i32 %less, 13
  %odd = and i32 %cut, 1
  %half_ulp = add i32 %odd, 4095
  %up = add i32 %less, %half_ulp
  %normal = lshr i32 %up, 13
  %magnitude = bitcast i32 %a to float
  %sum = fadd float %magnitude, 5.000000e-01
  %sum_bits = bitcast float %sum to i32
  %subnormal = sub i32 %sum_bits, 1056964608
  %is_nan = icmp ugt i32 %a, 2139095040
  %is_large = icmp uge i32 %a, 1199566848
  %is_normal = icmp uge i32 %a, 947912704
  %r1 = select i1 %is_normal, i32 %normal, i32 %subnormal
  %r2 = select i1 %is_large, i32 31744, i32 %r1
  %r3 = select i1 %is_nan, i32 %nan, i32 %r2
  %r4 = or i32 %r3, %sign
  %r5 = trunc i32 %r4 to i16
  %h = bitcast i16 %r5 to half
  ret half %h
}
)";

}  // namespace weft::backend::native
