# Mistakes that the compiler can see end in a short message: each case below must fail to compile, with at most
# kMaxLines lines of diagnostics, one of which has the expected words. The case "correct" must compile, so that the
# others fail for their own reason.
# Usage: run.py COMPILER INCLUDE_FOLDER [CASE...]
import concurrent.futures
import os
import subprocess
import sys
import tempfile

kMaxLines = 15
# Clang says more about each candidate.
kMaxLinesOfClang = 45
# GCC's own words, beside the messages of weft, and Clang's for the same.
WORDS_OF_CLANG = {
    "cannot convert": "no known conversion",
    "conversion from": "no viable conversion from",
    "from 'weft::Bool'": ("value of type 'Bool'", "value of type 'weft::Bool'"),
    "deleted": "no viable overloaded '='",
    "cannot bind": "cannot bind to a temporary",
    "'else' without a previous 'if'": "expected expression",
    "discards qualifiers": "no viable overloaded '='",
    "no match for": ("no matching function for call", "no viable overloaded '='"),
    "no match for call": "no matching function for call",
    "no matching function": "no matching member function",
    "has no member": "no member named",
    "argument = 1; Given = weft::Array<int": "check_argument<1, weft::Array<int",
    "argument = 2; Given = weft::Array<weft::vec<3, float> >": "check_argument<2, weft::Array<weft::vec<3, float>",
    "argument = 1; Given = float": "check_argument<1, float,",
    "argument = 2; Given = float; Taken = weft::Var<weft::vec<3, float> >": "check_argument<2, float, weft::Var<weft::vec<3, float>>>",
    "argument = 3; Given = weft::Array<float, 1>; Taken = weft::Var<int>": "check_argument<3, weft::Array<float, 1>, weft::Var<int>>",
    "argument = 4; Given = char [2]": "check_argument<4, char[2],",
    "argument = 2; Given = Particle<>; Taken = weft::Var<Mesh<> >": "check_argument<2, Particle<>, weft::Var<Mesh<>>>",
    "argument = 1; Given = int; Taken = weft::Var<Mesh<> >": "check_argument<1, int, weft::Var<Mesh<>>>",
    "expected = 4; int given = 3": "check_count<4, 3>",
    "expected = 4; int given = 5": "check_count<4, 5>",
    "parameter = 2; Given = weft::vec<2, float>": "check_parameter<2, weft::vec<2, float>>",
    "parameter = 1; Given = weft::Array<float, 1>": "check_parameter<1, weft::Array<float, 1>>",
}

INCLUDES = """#include <weft/weft.h>
#include <weft/runtime/algorithms/sort.h>
#include <weft/runtime/graph.h>
"""
HEAD = INCLUDES + """using namespace weft;
template <template <class> class F = Host>
struct Particle {
  F<vec3> pos;
  F<float> mass;
};
template <template <class> class F = Host>
struct Mesh {
  F<int> id;
  F<Array<vec3>> points;
};
struct Plain { float a; };
auto k = kernel("k", [](Arr<float> x, Arr<const vec3, 2> v, Int n, Float s) {
  Int i = tid();
  x[i] = s * Float(n);
"""
TAIL = """});
void use(Device d) {
  Array<float> x = zeros<float>(d, 3);
  Array<vec3, 2> v = zeros<vec3, 2>(d, {3, 3});
  %s
}
"""

def structs(line, declarations=""):
    """A second kernel, over structs, and what stands before it."""
    return f'}});\n{declarations}auto k2 = kernel("k2", [](Arr<Particle<>> p, Arr<Mesh<>> m) {{ Int i = tid(); {line}'


def element(type, declarations):
    """A kernel over an array of this type."""
    return f'}});\n{declarations}\nauto k2 = kernel("k2", [](Arr<{type}> a) {{ {type} x{{}}; a[0] = x;'


def two_face(name, fields):
    return f"template <template <class> class F = Host>\nstruct {name} {{ {fields} }};"


# name: (line of the kernel, line of the host, words of the message or several of them; None: must compile)
CASES = {
    "else_without_an_if": ("If (s > 0) { x[i] = 0; } s += 1; Else { x[i] = 1; }", "", "'else' without a previous 'if'"),
    "correct": ("x[i] = v(i, 0).x + s; print(\"x\", x[i], v(i, 0)); assert_(s > 0, s);", "launch(k, 3, x, v, 4, 2);", None),
    "print_of_an_array": ("print(x);", "", "take texts, scalars, vectors, matrices and structs"),
    "print_of_a_row_behind_a_text": ("print(\"row\", v[i]);", "", "take texts, scalars, vectors, matrices and structs"),
    "assertion_of_an_integer": ("assert_(n, \"n\");", "", "cannot convert"),
    "mixed_types": ("x[i] = s + n;", "", "operands of different types"),
    "implicit_conversion": ("Float f = n;", "", "conversion from"),
    "real_literal_for_integer": ("Int f = n + 2.5;", "", "operands of different types"),
    "real_literal_in_an_integer_variable": ("Int f = 1.5f;", "", "conversion from"),
    "assignment_of_another_type": ("Float f; f = n;", "", "convert it, as in Float(i)"),
    "assignment_of_a_real_literal": ("n = 1.5f;", "", "convert it, as in Float(i)"),
    "assignment_of_another_type_to_an_element": ("x[i] = n;", "", "convert it, as in Float(i)"),
    "assignment_of_another_type_to_a_component": ("Vec3 w; w[n] = n;", "", "convert it, as in Float(i)"),
    "assignment_of_another_vector": ("Vec3 w; w = Vec3d();", "", "or Vec3d(v)"),
    "assignment_of_a_number_to_a_vector": ("Vec3 w; w = s;", "", "Vec3(s)"),
    "native_if": ("if (s < 1) x[i] = 0;", "", "needs_If_While_or_select"),
    "native_if_of_vectors": ("if (v(i, 0) == v(i, 1)) x[i] = 0;", "", "needs_If_While_or_select"),
    "native_if_of_two_conditions": ("if (s < 1 && n > 0) x[i] = 0;", "", "needs_If_While_or_select"),
    "native_if_of_a_negation": ("if (!(s < 1)) x[i] = 0;", "", "needs_If_While_or_select"),
    "native_if_of_a_variable": ("Bool b; if (b) x[i] = 0;", "", "from 'weft::Bool'"),
    "native_while": ("while (s < 1) s += 1;", "", "needs_If_While_or_select"),
    "native_for": ("for (Int j = 0; j < n; ++j) s += 1;", "", "needs_If_While_or_select"),
    "native_choice": ("s = isnan(s) ? s : s;", "", "needs_If_While_or_select"),
    "condition_of_an_integer": ("If (n) x[i] = 0;", "", "a condition is a Bool"),
    "condition_of_a_real": ("If (s) x[i] = 0;", "", "a condition is a Bool"),
    "second_condition_of_an_integer": ("If (s > 0) x[i] = 0; ElseIf (n) x[i] = 1;", "", "a condition is a Bool"),
    "loop_condition_of_an_integer": ("While (n) n -= 1;", "", "a condition is a Bool"),
    "condition_of_an_integer_without_macros": ("if_(n, [&] { x[i] = 0; });", "", "a condition is a Bool"),
    "loop_condition_without_macros": ("while_([&] { return n; }, [&] { n -= 1; });", "", "a condition is a Bool"),
    "range_of_a_real": ("for (auto j : range(s)) x[j] = 0;", "", "the bounds and the step of a range are integers"),
    "range_of_a_real_literal": ("for (auto j : range(0, 2.5)) x[j] = 0;", "", "the bounds and the step of a range"),
    "range_of_two_types": ("for (auto j : range(n, Int64(9))) x[0] = 0;", "", "the bounds and the step of a range"),
    "minimum_of_two_types": ("x[i] = min(s, n);", "", "min() takes numbers of one type"),
    "maximum_of_an_element": ("x[i] = max(n, x[i]);", "", "max() takes numbers of one type"),
    "integer_by_a_real_bound": ("Int m = min(n, 2.5f);", "", "min() takes numbers of one type"),
    "clamp_of_two_types": ("x[i] = clamp(s, n, 2.f);", "", "clamp() takes numbers of one type"),
    "power_of_an_integer": ("x[i] = pow(n, 2);", "", "pow() takes real numbers of one type"),
    "power_by_an_integer": ("x[i] = pow(s, n);", "", "pow() takes real numbers of one type"),
    "sine_of_an_integer": ("x[i] = sin(n);", "", "sin() takes real numbers"),
    "sine_of_integers": ("Vec3 w = sin(Vec3i());", "", "sin() takes real numbers"),
    "sine_of_a_matrix": ("Mat33 m = sin(Mat33());", "", "sin() takes real numbers"),
    "absolute_value_of_a_boolean": ("abs(s < 1);", "", "abs() takes numbers"),
    "is_an_integer_nan": ("If (isnan(n)) x[i] = 0;", "", "isnan() takes real numbers"),
    "minimum_of_two_sizes": ("x[i] = min(v(i, 0), Vec4()).x;", "", "min() takes numbers of one type"),
    "choice_by_an_integer": ("x[i] = select(n, s, s);", "", "select() takes a Bool"),
    "choice_of_two_types": ("x[i] = select(s > 0, s, n);", "", "two values of one type"),
    "choice_of_two_host_types": ("Int j = select(s > 0, 1u, -1);", "", "two values of one type"),
    "choice_of_two_sizes": ("Vec3 w = select(s > 0, v(i, 0), Vec4());", "", "two values of one type"),
    "logical_and_of_numbers": ("If (s && n) x[i] = 0;", "", "the operands of && are Bools"),
    "logical_or_of_a_number": ("If (s > 0 || n) x[i] = 0;", "", "the operands of || are Bools"),
    "logical_not_of_an_integer": ("If (!n) x[i] = 0;", "", "! takes Bools"),
    "negative_boolean": ("Bool b = -(s > 0);", "", "unary - takes numbers"),
    "complement_of_a_real": ("x[i] = ~s;", "", "~ takes integers"),
    "shift_of_a_real": ("x[i] = s << 1;", "", "the operands of << are integers of one type"),
    "bits_of_a_real": ("x[i] = s & s;", "", "& takes integers and Bools"),
    "order_of_vectors": ("Bool b = v(i, 0) < v(i, 1);", "", "< compares two numbers"),
    "boolean_added_to_a_number": ("Int c; c += s > 0;", "", "convert one of them, as in Float(i)"),
    "minimum_of_the_standard_library": ("x[i] = std::min(s, s);", "", "needs_If_While_or_select"),
    "sum_of_booleans": ("Bool b = (s > 0) + (s > 1);", "", "+ takes numbers"),
    "compound_assignment_of_another_type": ("s += n;", "", "convert one of them, as in Float(i)"),
    "compound_assignment_of_another_type_to_an_element": ("x[i] -= n;", "", "convert one of them, as in Float(i)"),
    "compound_assignment_of_another_vector": ("Vec3 w; w *= Vec3d();", "", "convert one of them, as in Vec3d(v)"),
    "sum_kept_in_a_host_number": ("auto sum = 0.f; sum += x[i];", "", "declare a traced one, as in Float sum = 0"),
    "product_kept_in_a_host_vector": ("vec3 w; w *= s;", "", "declare a traced one"),
    "sum_of_a_vector_and_a_number": ("Vec3 w = v(i, 0) + s;", "", "repeat the number, as in Vec3(s)"),
    "number_added_to_a_vector": ("Vec3 w; w += s;", "", "repeat the number, as in Vec3(s)"),
    "power_of_a_vector_by_an_integer": ("Vec3 w = pow(v(i, 0), n);", "", "operands of different element types"),
    "clamp_of_a_vector_by_an_integer": ("Vec3 w = clamp(v(i, 0), 0, n);", "", "operands of different element types"),
    "shift_by_another_type": ("Int m = n >> UInt(1);", "", "the operands of >> are integers of one type"),
    "elements_kept_by_auto": ("auto t = x[0]; x[0] = x[1]; x[1] = t; std::swap(x[0], x[1]); auto& r = x[2]; r = t; auto c = v(0, 0); c = c + v(0, 1); const auto& d = v(1, 0); x[2] += d.y; Mat33 m; m.row(0) = c;", "", None),
    "write_to_const": ("v(i, 0) = vec3{1, 2, 3};", "", "this cannot be written"),
    "update_of_const": ("v(i, 0) += vec3{1, 2, 3};", "", "this cannot be written"),
    "scaling_of_const": ("v(i, 0) *= 2;", "", "this cannot be written"),
    "write_to_a_component_of_const": ("v(i, 0).x = s;", "", "this cannot be written"),
    "update_of_a_component_of_const": ("v(i, 0)[n] -= s;", "", "this cannot be written"),
    "write_through_a_name_of_const": ("auto& r = v(i, 0); r = v(i, 1);", "", "this cannot be written"),
    "too_few_indices": ("x[i] = v(i).x;", "", "as many indices as it has dimensions"),
    "wrong_vector": ("Vec2 w = v(i, 0);", "", "conversion from"),
    "integer_in_a_real_vector": ("Vec3 w = Vec3(i, 0, 0);", "", "a part of a vector is of another element type"),
    "too_many_parts": ("Vec4 w = Vec4(v(i, 0), 1, 2);", "", "do not add up"),
    "vectors_of_two_sizes": ("x[i] = (v(i, 0) + Vec4()).x;", "", "operands of different types or sizes"),
    "vectors_of_two_element_types": ("Vec3 w = v(i, 0) * Vec3d();", "", "operands of different types or sizes"),
    "vector_by_integer": ("Vec3 w = v(i, 0) * n;", "", "convert one of them, as in Float(i)"),
    "matrix_by_short_vector": ("Vec3 w = Mat33() * Vec2();", "", "operands of different types or sizes"),
    "matrices_of_two_shapes": ("Mat33 w = Mat33() + Mat44();", "", "operands of different types or sizes"),
    "function_of_two_sizes": ("x[i] = dot(v(i, 0), Vec4());", "", "vectors of different sizes"),
    "function_of_two_element_types": ("x[i] = dot(v(i, 0), vec3d());", "", "operands of different element types"),
    "implicit_vector_conversion": ("Vec3 w = Vec3d();", "", "conversion from"),
    "assignment_to_a_row_of_an_expression": ("Mat33 m; (m * m).row(0) = v(i, 0);", "", "this cannot be written"),
    "assignment_to_an_expression": ("(s + s) = 2;", "", "this cannot be written"),
    "update_of_an_expression": ("(s + s) += 2;", "", "this cannot be written"),
    "assignment_to_what_a_function_gives": ("[&] { return x[i]; }() = 2;", "", "this cannot be written"),
    "name_of_an_expression": ("auto& r = (v(i, 0) + v(i, 1))[n];", "", "cannot bind"),
    "real_part_of_host_integers": ("", "vec3i w{1.5, 2, 3};", "a part of a vector"),
    "atomic_on_const": ("atomic_add(v(i, 0), vec3{1, 2, 3});", "", "the array is read only"),
    "bits_of_reals": ("atomic_and(x[i], 1.f);", "", "the elements are not integers"),
    "shared_of_traced_size": ("auto s = shared<float>(n);", "", "no matching function"),
    "shared_structs": ("shared<std::array<float, 3>>(8);", "", "elements are scalars, vectors or matrices"),
    "shared_as_array": ("auto f = [](Arr<float> a) { a[0] = 1; }; f(shared<float>(8));", "", "no match for"),
    "shared_with_too_few_indices": ("shared<float, 2>({8, 8})(i) = 1;", "", "as many indices as it has dimensions"),
    "subgroup_sum_of_booleans": ("subgroup_add(s > 1);", "", "subgroup_add() takes numbers"),
    "subgroup_scan_of_booleans": ("subgroup_inclusive_add(s > 1);", "", "subgroup_inclusive_add() takes numbers"),
    "subgroup_bits_of_reals": ("subgroup_xor(v(i, 0));", "", "subgroup_xor() takes integers, booleans"),
    "atomic_on_an_expression": ("atomic_add(x[i] + s, 1.f);", "", "or this is no element of one"),
    "one_number_for_vector": ("});\nauto k2 = kernel(\"k2\", [](Arr<vec3, 2> x, Vec3 p) { x(0, 0) = p;", "launch(k2, 3, v, 2.f);", ("one number is given where the kernel takes a vector", "argument = 2; Given = float; Taken = weft::Var<weft::vec<3, float> >")),
    "one_number_for_matrix": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x, Mat33 p) { x[0] = p(0, 0);", "launch(k2, 3, x, 1);", "one number is given where the kernel takes a vector, a matrix"),
    "one_number_for_struct": ("});\n" + two_face("Pair", "F<float> a; F<float> b;") + "\nauto k2 = kernel(\"k2\", [](Arr<float> x, Var<Pair<>> p) { x[0] = p.a;", "launch(k2, 3, x, 1.f);", "one number is given where the kernel takes a vector, a matrix or a struct"),
    "real_vector_for_integers": ("});\nauto k2 = kernel(\"k2\", [](Arr<int> x, Vec3i p) { x[0] = p.x;", "launch(k2, 3, zeros<int>(d, 3), vec3{1, 2, 3});", "a real number is given where the kernel takes an integer"),
    "real_for_bool": ("});\nauto k2 = kernel(\"k2\", [](Arr<int> x, Bool b) { x[0] = select(b, 1, 2);", "launch(k2, 3, zeros<int>(d, 3), 0.5);", "a real number is given where the kernel takes an integer"),
    "bools_for_a_vector": ("});\nauto k2 = kernel(\"k2\", [](Arr<int> x, Vec3i p) { x[0] = p.x;", "launch(k2, 3, zeros<int>(d, 3), vec<3, bool>(true));", "does not convert to the kernel's parameter"),
    "user_types_convert_as_they_say": ("});\nstruct Point { float a; explicit operator vec3() const { return vec3(a); } operator float() const { return a; } };\n"
                                       "auto k2 = kernel(\"k2\", [](Arr<float> x, Vec3 p, Float f) { x[0] = p.x + f;", "launch(k2, 3, x, Point{1}, Point{2});", None),
    "real_for_integer_argument": ("", "launch(k, 3, x, v, 4.5, 2);", "a real number is given"),
    "host_type_as_parameter": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x, float s) { x[0] = s;", "", "not of a traced type"),
    "generic_kernel": ("});\nauto k2 = kernel(\"k2\", [](auto x) { x[0] = 1;", "", "types of a kernel's parameters are written out"),
    "kernel_that_returns": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x) { return Float(x[0]);", "", "a kernel returns nothing"),
    "kernel_of_a_reference": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x, Float& y) { x[0] = y;", "", "passed by value"),
    "pointer_as_parameter": ("});\nauto k2 = kernel(\"k2\", [](float* x) { x[0] = 1;", "", "not of a traced type"),
    "mutable_kernel": ("});\nauto k2 = kernel(\"k2\", [m = 1.f](Arr<float> x) mutable { x[0] = m++;", "", "a mutable lambda is no kernel"),
    "func_of_a_host_type": ("auto f = func(\"f\", [](float y) { return Float(y); });", "", "not of a traced type"),
    "func_of_a_reference": ("auto f = func(\"f\", [](Float& y) { y = 2; });", "", "passed by value"),
    "func_that_returns_a_host_value": ("auto f = func(\"f\", [](Float y) { return 2.f; }); f(s);", "", "a result is not of a traced type"),
    "mutable_func": ("auto f = func(\"f\", [m = 1](Float y) mutable { m += 1; return y; });", "", "a mutable lambda is no function"),
    "argument_of_a_func": ("auto f = func(\"f\", [](Float y) { return y; }); f(n);", "", "no match for call"),
    "number_of_arguments_of_a_func": ("auto f = func(\"f\", [](Float y, Float z) { return y; }); f(s);", "", "no match for call"),
    "gradient_without_that_of_the_result": ("auto f = grad(func(\"f\", [](Float y, Int k) { return y; }), [](Float y, Int k) { return y; });", "", "then the gradient of each of its real results"),
    "gradient_for_integers": ("auto f = grad(func(\"f\", [](Float y, Int k) { return y; }), [](Float y, Int k, Float d) { return std::tuple(d, k); });", "", "returns the gradient of each real parameter"),
    "gradient_that_returns_nothing": ("auto f = grad(func(\"f\", [](Float y) { return y; }), [](Float y, Float d) {});", "", "returns the gradient of each real parameter"),
    "gradient_of_nothing": ("auto f = grad(func(\"f\", [](Float y) {}), [](Float y) { return y; });", "", "no gradient comes to it"),
    "gradient_of_a_generic_function": ("auto f = grad(func(\"f\", [](auto y) { return y; }), [](auto y) { return y; }); f(s);", "", "then the gradient of each of its real results"),
    "second_gradient": ("auto f = grad(func(\"f\", [](Float y) { return y; }), [](Float y, Float d) { return d; }); auto g = grad(f, [](Float y, Float d) { return d; });", "", "has a gradient of its own already"),
    "gradient_of_a_lambda": ("auto f = grad([](Float y) { return y; }, [](Float y, Float d) { return d; });", "", "no matching function"),
    "replay_of_other_results": ("auto f = replay(func(\"f\", [](Float y) { return y; }), [](Float y) { return std::tuple(y, y); });", "", "a replay returns what the function returns"),
    "replay_of_other_parameters": ("auto f = replay(func(\"f\", [](Float y) { return y; }), [](Int y) { return Float(y); });", "", "a replay takes the function's parameters"),
    "gradient_of_an_array_of_integers": ("auto f = grad(func(\"f\", [](Arr<int> y, Float a) { return a; }), [](Arr<int> y, Float a, Float d) { gradient(y)[0] += 1; return d; });", "", "the elements hold no real numbers"),
    "detach_of_an_array": ("detach(x);", "", "takes values; detach the elements"),
    "array_of_a_func": ("auto f = func(\"f\", [](Arr<int> y) { return y[0]; }); f(x);", "", "no match for call"),
    "wrong_element_type": ("", "launch(k, 3, zeros<int>(d, 3), v, 4, 2);", ("another element type or dimension", "argument = 1; Given = weft::Array<int")),
    "wrong_dimension": ("", "launch(k, 3, x, zeros<vec3>(d, 3), 4, 2);", ("another element type or dimension", "argument = 2; Given = weft::Array<weft::vec<3, float> >")),
    "value_for_array": ("", "launch(k, 3, 1.f, v, 4, 2);", ("the kernel's parameter is an Arr: give it an Array, as in", "argument = 1; Given = float")),
    "array_for_value": ("", "launch(k, 3, x, v, x, 2);", ("does not convert to the kernel's parameter", "argument = 3; Given = weft::Array<float, 1>; Taken = weft::Var<int>")),
    "text_for_value": ("", "launch(k, 3, x, v, 4, \"2\");", ("does not convert to the kernel's parameter", "argument = 4; Given = char [2]")),
    "no_number_of_threads": ("", "launch(k, x, v, 4, 2);", "the number of threads is missing after the kernel"),
    "no_number_of_threads_on_a_stream": ("", "launch(d.stream(), k, x, v, 4, 2);", "the number of threads is missing after the kernel"),
    "real_number_of_threads": ("", "launch(k, 3.0, x, v, 4, 2);", "the number of threads is missing after the kernel"),
    "host_vector_for_array": ("", "launch(k, 3, std::vector<float>(3), v, 4, 2);", "the kernel's parameter is an Arr: give it an Array, as in"),
    "c_array_for_array": ("", "const float c[3] = {}; launch(k, 3, c, v, 4, 2);", "the kernel's parameter is an Arr: give it an Array, as in"),
    "wrong_size_of_matrix": ("svd3(Mat22());", "", "svd3() takes 3x3 matrices"),
    "determinant_of_a_large_matrix": ("determinant(Mat<5, 5, float>());", "", "determinant() takes 2x2, 3x3 and 4x4 matrices"),
    "inverse_of_integers": ("inverse(Mat<2, 2, int>());", "", "matrices of real numbers"),
    "wrong_result_of_a_factorisation": ("Mat33 q; Vec3 u; svd3(q, u, q, q);", "", "assigned to a variable of another type"),
    "special_function_of_an_integer": ("erf(n);", "", "erf() takes real numbers"),
    "random_state_not_a_variable": ("x[i] = randf(x[i]);", "", "the state of random numbers is a variable"),
    "random_bound_of_another_type": ("UInt r; x[i] = randf(r, n, 1);", "", "a bound is not of the type"),
    "random_integer_bound": ("UInt r; Int k = randi(r, 0.5f, 3);", "", "a bound is not of the type"),
    "random_seed": ("UInt r = rand_init(s);", "", "seeds and offsets of random numbers are integers"),
    "distribution": ("UInt r; Int k = sample_cdf(r, v);", "", "the distribution is an Arr<const float>"),
    "noise_of_integers": ("x[i] = noise(1, Vec3i());", "", "float or double coordinates"),
    "noise_of_half": ("Half h = noise(1, Half(s));", "", "float or double coordinates"),
    "noise_of_five": ("x[i] = noise(1, Vec<5, float>());", "", "takes a number or a vector of 2 to 4"),
    "noise_seed": ("x[i] = noise(s, s);", "", "the seed, the periods"),
    "noise_periods": ("x[i] = pnoise(1, v(i, 0), 2, 3);", "", "a period for each number"),
    "curl_of_a_number": ("x[i] = curlnoise(1, s).x;", "", "curlnoise a vector"),
    "search_for_another_type": ("Int k = lower_bound(x, n);", "", "not of the type of what is searched"),
    "search_in_two_dimensions": ("Int k = upper_bound(v, s);", "", "an Arr of numbers with one dimension"),
    "host_vector_as_a_parameter": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x, vec2 s) { x[0] = s.x;", "", ("a parameter is not of a traced type", "parameter = 2; Given = weft::vec<2, float>")),
    "host_array_as_a_parameter": ("});\nauto k2 = kernel(\"k2\", [](Array<float> x, Float s) { x.at(0);", "", ("a parameter is not of a traced type", "parameter = 1; Given = weft::Array<float, 1>")),
    "three_hundred_parameters": ("});\nauto k2 = kernel(\"k2\", [](" + ", ".join(["Float"] * 300) + ") {", "", "a kernel has at most 64 parameters"),
    "a_thousand_parameters": ("});\nauto k2 = kernel(\"k2\", [](" + ", ".join(["Float"] * 1000) + ") {", "", "a kernel has at most 64 parameters"),
    "parameters_of_indexed_arrays": ("});\nauto k2 = kernel(\"k2\", [](" + ", ".join(["IndexedArr<float>"] * 33) + ") {", "", "a kernel has at most 64 parameters"),
    "sixty_four_parameters": ("});\nauto k2 = kernel(\"k2\", [](" + ", ".join(["Float"] * 64) + ") {", "", None),
    "span_of_a_temporary_array": ("", "auto s = zeros<float>(d, 3).host_span();", "deleted"),
    "wrapped_constants": ("", "const std::vector<float> c(4); wrap(d, c);", "this one is const"),
    "array_for_indexed_array": ("});\nauto k2 = kernel(\"k2\", [](IndexedArr<float> x) { x[0] = 1;", "launch(k2, 3, x);", "no indexed array: see indexed()"),
    "elements_of_another_type": ("", "from_flat<vec3>(d, std::vector<double>(3));", "no matching function"),
    "other_element_size": ("", "x.view_as<vec3>();", "elements of the same size only"),
    "gradient_of_integers": ("", "zeros<int>(d, 3).requires_grad();", "only arrays of real numbers have gradients"),
    "loss_of_vectors": ("", "Tape().backward(v);", "backward() takes one real number, or seeds"),
    "seed_of_another_type": ("", "Tape().backward({{x, v}});", "no matching function"),
    "jacobian_of_integers": ("", "Tape t; jacobian(t, zeros<int>(d, 3), x);", "only arrays of real numbers have Jacobians"),
    "gradcheck_of_indexed_array": ("});\nauto k2 = kernel(\"k2\", [](IndexedArr<float> x) { x[0] = 1;", "gradcheck(k2, 3, indexed(x, zeros<int>(d, 3)));", "not indexed arrays or structs"),
    "array_of_a_size": ("", "Array<float> y(d, 1000);", "n zeros are zeros<T>(device, n)"),
    "array_of_a_size_without_a_device": ("", "Array<float> y(1000);", "n zeros are zeros<T>(device, n)"),
    "array_of_sizes": ("", "Array<float, 2> y(d, {4, 8});", "zeros<T, 2>(device, {rows, columns})"),
    "array_of_two_dimensions_from_a_vector": ("", "Array<float, 2> y(d, std::vector<float>(32));", "is made of its sizes"),
    "array_from_vectors_in_a_vector": ("", "Array<float, 2> y(d, std::vector<std::vector<float>>(3));", "is made of its sizes"),
    "too_few_arguments": ("", "launch(k, 3, x, v, 4);", ("another number of parameters", "expected = 4; int given = 3")),
    "too_many_arguments": ("", "launch(d.stream(), k, 3, x, v, 4, 2, 1);", ("another number of parameters", "expected = 4; int given = 5")),
    "too_few_arguments_of_a_node": ("", "Graph().set(GraphNode(), k, x, v, 4);", ("another number of parameters", "expected = 4; int given = 3")),
    "captured_array": ("", "auto k2 = kernel(\"k2\", [x](Arr<float> y) { y[tid()] = x[tid()]; });", "pass the array as a parameter"),
    "captured_array_of_two_dimensions": ("", "auto k2 = kernel(\"k2\", [v](Arr<vec3> y) { Int i = tid(); y[i] = v(i, 0); });", "pass the array as a parameter"),
    "row_of_a_captured_array": ("", "auto k2 = kernel(\"k2\", [v](Arr<vec3> y) { Int i = tid(); y[i] = v[i][0]; });", "pass the array as a parameter"),
    "element_of_an_array_on_the_host": ("", "float f = x[0];", "on the host read one by at()"),
    "array_of_bools_from_a_vector_of_them": ("", "Array<bool> b(d, std::vector<bool>(3));", "a std::vector<bool> has no bools in memory"),
    "array_from_values_of_another_type": ("", "Array<float> b(d, std::vector<double>(3));", "the values are of another type than the array's elements"),
    "array_with_sizes_from_values_of_another_type": ("", "Array<float, 2> b(d, {1, 3}, std::vector<double>(3));", "the values are of another type than the array's elements"),
    "assignment_of_values_of_another_type": ("", "x.assign(std::vector<int>(3));", "the values are of another type than the array's elements"),
    "two_sizes_of_an_array_with_one_dimension": ("", "zeros<float>(d, {3, 4});", "as many sizes as dimensions"),
    "one_size_of_an_array_with_two_dimensions": ("", "auto b = full<float, 2>(d, 3, 1.f);", "as many sizes as dimensions"),
    "sizes_of_another_shape": ("", "auto b = x.reshape<2>(3);", "as many sizes as dimensions"),
    "struct_correct": (structs("Var<Particle<>> q = p[i]; q = Var<Particle<>>(q.pos, 2.f); p[i] = q; p[i].pos.x = p[0].mass; p[i] = p[i + 1]; m[i].points[0] = p[i].pos;"), "", None),
    "unknown_field": (structs("p[i].masss = 1;"), "", "has no member"),
    "wrong_type_of_field": (structs("p[i].mass = p[i].pos;"), "", "convert it, as in Float(i)"),
    "wrong_struct": (structs("p[i] = m[i];"), "", "what is assigned is of another type"),
    "wrong_field_of_variable": (structs("Var<Particle<>> q = p[i]; q.pos = i;"), "", "convert it, as in Float(i)"),
    "undeclared_struct": (element("Plain", ""), "", "declare a struct with WEFT_STRUCT"),
    "undeclared_variable": (structs("Var<Plain> q;"), "", "declare a struct with WEFT_STRUCT"),
    "undeclared_array": ("", "zeros<Plain>(d, 3);", "declare a struct with WEFT_STRUCT"),
    "struct_declared_in_part": (element("Part", "struct Part { double a; int b; char c; };\nWEFT_STRUCT(Part, a, b);"), "", "do not add up"),
    "struct_declared_out_of_order": (element("Part", "struct Part { int a, b; };\nWEFT_STRUCT(Part, b, a);"), "", "do not add up"),
    "struct_aligned_by_hand": (element("Part", "struct alignas(16) Part { int a; };\nWEFT_STRUCT(Part, a);"), "", "do not add up"),
    "struct_with_bit_field": (element("Part", "struct Part { int a : 3; int b; };\nWEFT_STRUCT(Part, a, b);"), "", "do not add up"),
    "struct_with_pointer": (element("Part", "struct Part { int* a; };\nWEFT_STRUCT(Part, a);"), "", "of a type that kernels do not know"),
    "two_faces_with_c_array": (element("Part<>", two_face("Part", "F<int> a; F<float> b[4];")), "", "declared as F<type>"),
    "two_faces_with_plain_field": (element("Part<>", two_face("Part", "F<int> a; float b;")), "", "declared as F<type>"),
    "two_faces_without_fields": (element("Part<>", two_face("Part", "")), "", "declared as F<type>"),
    "two_faces_with_bad_field": (element("Part<>", two_face("Part", "F<int> a; F<Plain> b;")), "", "of a type that kernels do not know"),
    "array_in_memory_replaced": (structs("m[i].points = m[0].points;"), "", "cannot replace an array"),
    "array_in_memory_replaced_by_argument": ("});\nauto k2 = kernel(\"k2\", [](Arr<Mesh<>> m, Arr<vec3> p) { m[0].points = p;", "", "cannot replace an array"),
    "struct_with_arrays_copied_in_memory": (structs("m[i] = m[0];"), "", "arrays are no values there"),
    "array_name_assigned": (structs("Arr<vec3> a = m[i].points; a = m[0].points;"), "", "cannot replace an array"),
    "assignment_to_a_fixed_array_of_an_expression": (structs("Var<std::array<float, 3>> w; select(p[i].mass > 0, w, w)[i] = 1;"), "", "this cannot be written"),
    "key_of_a_sort": ("", "radix_sort(zeros<vec3>(d, 3));", "keys are integers of 32 or 64 bits, float or double"),
    "short_key_of_a_sort": ("", "radix_sort_pairs(zeros<std::int16_t>(d, 3), x);", "keys are integers of 32 or 64 bits, float or double"),
    "value_of_a_sort": ("", "radix_sort_pairs(x, zeros<vec3>(d, 3));", "values have 4 or 8 bytes"),
    "another_struct": ("});\nauto k2 = kernel(\"k2\", [](Arr<float> x, Var<Mesh<>> m) { x[0] = Float(m.id);", "launch(k2, 3, x, Particle<>());", ("the kernel's parameter is another struct", "argument = 2; Given = Particle<>; Taken = weft::Var<Mesh<> >")),
    "number_for_struct": ("});\nauto k2 = kernel(\"k2\", [](Var<Mesh<>> m) { m.points[0] = Vec3();", "launch(k2, 3, 4);", ("the kernel's parameter is another struct", "argument = 1; Given = int; Taken = weft::Var<Mesh<> >")),
    "struct_for_array": ("", "launch(k, 3, Particle<>(), v, 4, 2);", "the kernel's parameter is an Arr: give it an Array, as in"),
    "wrong_struct_argument": (structs("i = 1;"), "launch(k2, 3, zeros<Mesh<>>(d, 3), zeros<Mesh<>>(d, 3));", "another element type or dimension"),
}


def is_clang(compiler):
    return "clang" in subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout


def compile_headers(compiler, include, folder, clang):
    """Compiles the headers that all cases include, once, into `folder`: they take most of a case's time. Returns the
    options by which a case finds them; none if the compiler cannot do so, which costs time alone."""
    header = os.path.join(folder, "head.h")
    with open(header, "w") as file:
        file.write("#pragma once\n" + INCLUDES)
    compiled = header + (".pch" if clang else ".gch")
    made = subprocess.run([compiler, *options_of(clang), "-I", include, "-x", "c++-header", header, "-o", compiled],
                          capture_output=True)
    if made.returncode != 0:
        return []
    return ["-include-pch", compiled] if clang else ["-include", header]


def options_of(clang):
    return ["-std=c++20", "-fno-caret-diagnostics" if clang else "-fno-diagnostics-show-caret"]


def check(compiler, include, name, clang, headers):
    """What is wrong with a case ("" for nothing), and the lines of the compiler."""
    kernel, host, words = CASES[name]
    source = HEAD + "  " + kernel + "\n" + TAIL % host
    command = [compiler, *options_of(clang), "-fsyntax-only", "-I", include, *headers, "-x", "c++", "-"]
    run = subprocess.run(command, input=source, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    lines = [line for line in run.stderr.splitlines() if line.strip()]
    if words is None:
        return "" if run.returncode == 0 else "does not compile", lines
    if run.returncode == 0:
        return "compiles", lines
    for part in words if isinstance(words, tuple) else (words,):
        said = WORDS_OF_CLANG.get(part, part) if clang else part
        said = said if isinstance(said, tuple) else (said,)
        if not any(one in line for line in lines for one in (part, *said)):
            return f'lacks "{said[0]}"', lines
    most = kMaxLinesOfClang if clang else kMaxLines
    return f"has {len(lines)} lines of diagnostics" if len(lines) > most else "", lines


def main():
    compiler, include, *names = sys.argv[1:]
    names = names or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print("no such case:", *unknown)
        return 2
    failed = 0
    clang = is_clang(compiler)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = compile_headers(compiler, include, folder, clang)
        checks = pool.map(lambda n: check(compiler, include, n, clang, headers), names)
        for name, (problem, lines) in zip(names, checks):
            print(f"{name}: {problem or 'ok'} ({len(lines)} lines)", flush=True)
            if problem:
                failed += 1
                print("\n".join("    " + line for line in lines[:30]))
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
