// Bodies of the transform functions, once for all scalar faces.
#include "transform.h"

namespace weft::lib {

template <class S>
MatOf<4, 4, S> transform_compose(const VecOf<3, S>& p, const QuatOf<S>& q, const VecOf<3, S>& scale) {
  const MatOf<3, 3, S> r = quat_to_matrix<S>(q);
  MatOf<4, 4, S> m;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) m(i, j) = S(r(i, j) * scale[j]);
    m(i, 3) = p[i];
  }
  m(3, 3) = S(1);
  return m;
}

template <class S>
Decomposed<S> transform_decompose(const MatOf<4, 4, S>& m) {
  VecOf<3, S> scale;
  MatOf<3, 3, S> r;
  for (int j = 0; j < 3; ++j) {
    scale[j] = length(VecOf<3, S>(m(0, j), m(1, j), m(2, j)));
    for (int i = 0; i < 3; ++i) r(i, j) = S(m(i, j) / scale[j]);
  }
  return {VecOf<3, S>(m(0, 3), m(1, 3), m(2, 3)), quat_from_matrix<S>(r), scale};
}

template <class S>
VecOf<3, S> transform_by_matrix(const MatOf<4, 4, S>& m, const VecOf<3, S>& v, bool is_point) {
  VecOf<3, S> r;
  for (int i = 0; i < 3; ++i) {
    S sum = S(m(i, 0) * v.x + m(i, 1) * v.y + m(i, 2) * v.z);
    if (is_point) sum = S(sum + m(i, 3));
    r[i] = sum;
  }
  return r;
}

template <class S>
MatOf<6, 6, S> spatial_adjoint(const MatOf<3, 3, S>& r, const MatOf<3, 3, S>& s) {
  MatOf<6, 6, S> a;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      a(i, j) = r(i, j);
      a(i + 3, j) = s(i, j);
      a(i + 3, j + 3) = r(i, j);
    }
  return a;
}

#define WEFT_INSTANTIATE(S)                                                                               \
  template MatOf<4, 4, S> transform_compose<S>(const VecOf<3, S>&, const QuatOf<S>&, const VecOf<3, S>&); \
  template Decomposed<S> transform_decompose<S>(const MatOf<4, 4, S>&);                                   \
  template VecOf<3, S> transform_by_matrix<S>(const MatOf<4, 4, S>&, const VecOf<3, S>&, bool);           \
  template MatOf<6, 6, S> spatial_adjoint<S>(const MatOf<3, 3, S>&, const MatOf<3, 3, S>&);
WEFT_INSTANTIATE(half)
WEFT_INSTANTIATE(float)
WEFT_INSTANTIATE(double)
WEFT_INSTANTIATE(Var<half>)
WEFT_INSTANTIATE(Var<float>)
WEFT_INSTANTIATE(Var<double>)
#undef WEFT_INSTANTIATE

}  // namespace weft::lib
