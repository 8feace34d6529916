#!/usr/bin/env python3
# The lint's own test: each kind of broken sample must be found, and a clean tree must pass.
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # keeps the source folder clean
sys.path.insert(0, str(Path(__file__).resolve().parent))
import lint  # noqa: E402

OPS = """// Operations.
WEFT_OP(add,  2, numeric, same, pure, differentiable, operands)
WEFT_OP(load, 2, special, given, reads, structural, memory)
"""
CLEAN = {
    "frontend/ir/ops.def": OPS,
    "frontend/ir/verify.cpp": "// Verifier.\nbool f() { return op == Op::load; }\n",
    "frontend/ir/evaluate.cpp": "// Meaning.\nint f() { return int(Op::add); }\n",
    "frontend/support/error.h": "// Errors.\n#pragma once\n",
    "frontend/support/platform.cpp": '// Platform.\n#include <unistd.h>\nauto f() { return getenv("A"); }\n',
    "frontend/types/vec.h": '// Vectors.\n#pragma once\n#include "../support/error.h"\n',
    "backends/backend.h": '// Interface.\n#pragma once\n#include "../frontend/types/vec.h"\n',
    "backends/reference/run.cpp": '// Interpreter.\n#include "../backend.h"\nint f() { return int(Op::load); }\n',
    "spirv/emit.cpp": "// Emitter.\nint f() { return int(Op::add) + int(Op::load); }\n",
    "llvm/emit.cpp": "// Emitter.\nint f() { return int(Op::add) + int(Op::load); }\n",
    "runtime/weft.h": '// All.\n#pragma once\n#include <vector>\n#include "../backends/backend.h"\n',
    "tests/run.sh": "#!/usr/bin/env bash\n# Runs.\n",
}


class LintTest(unittest.TestCase):
    def problems(self, changes=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **(changes or {})}.items():
                if text is not None:
                    path = Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
            return lint.Lint(folder).run()

    def expect(self, changes, path, words):
        found = self.problems(changes)
        self.assertTrue(any(p.startswith(path + ":") and words in p for p in found), f"{words!r} not in {found}")
        self.assertEqual(len(found), 1, found)

    def test_clean_tree_passes(self):
        self.assertEqual(self.problems(), [])

    def test_upward_include_between_folders(self):
        self.expect({"spirv/a.h": '// A.\n#pragma once\n#include "../runtime/weft.h"\n'}, "spirv/a.h", "upward")

    def test_state_of_threads_outside_of_the_context(self):
        self.expect({"runtime/a.cpp": "// A.\nthread_local int state = 0;\n"}, "runtime/a.cpp", "thread_local")
        self.assertEqual(self.problems({"runtime/core/context.cpp": "// C.\nthread_local int state = 0;\n"}), [])

    def test_the_context_is_read_in_few_files(self):
        text = "// A.\nvoid f() { g(Context::here().recorder); }\n"
        self.expect({"runtime/tape/a.cpp": text}, "runtime/tape/a.cpp", "Context::here()")
        self.assertEqual(self.problems({"runtime/work/a.cpp": text}), [])

    def test_long_functions_of_the_runtime(self):
        body = "".join(f"  g({k});\n" for k in range(81))
        self.expect({"runtime/a.cpp": "// A.\nvoid f(int a,\n       int b) {\n" + body + "}\n"}, "runtime/a.cpp", "81 lines")
        self.expect({"runtime/a.h": "// A.\n#pragma once\nclass A {\n  void f() {\n" + body + "  }\n};\n"}, "runtime/a.h",
                    "81 lines")
        half = "".join(f"  g({k});\n" for k in range(59))
        self.assertEqual(self.problems({"runtime/a.cpp": "// A.\nvoid f() {\n" + half + "}\nvoid h() {\n" + half + "}\n"}), [])

    def test_functions_above_sixty_lines_say_why(self):
        function = "void f() {\n" + "".join(f"  g({k});\n" for k in range(61)) + "}\n"
        self.expect({"spirv/a.cpp": "// A.\n" + function}, "spirv/a.cpp", "61 lines")
        self.assertEqual(self.problems({"spirv/a.cpp": "// A.\n// In one piece: it is a list.\n" + function}), [])

    def test_errors_of_docstrings_in_few_lines(self):
        def header(*lines):
            comment = "".join(f"/// {x}".rstrip() + "\n" for x in lines)
            return {"runtime/a.h": f"// A.\n#pragma once\n{comment}int a();\n/// Ends here.\n"}
        few = ["Errors: a", "b", "c"]
        self.expect(header("Does.", *few, "d"), "runtime/a.h", "4 lines")
        self.expect(header("Errors, with the place: a", "b", "c", "d"), "runtime/a.h", "4 lines")
        self.expect(header("Does. Errors: a", "Error(io)", "c", "d", "e", "Cost: none"), "runtime/a.h", "5 lines")
        for end in ("", "\\param x  a", "Errors: more", "Cost: none", "Source: none", "Gradient: none"):
            self.assertEqual(self.problems(header("Does.", *few, end, "d")), [])
        self.assertEqual(self.problems(header("Does.", *few)), [])
        self.assertEqual(self.problems({"runtime/a.cpp": "// A.\n// Errors: a\n// b\n// c\n// d\n"}), [])

    def test_folders_with_too_many_files(self):
        self.expect({f"spirv/a{k}.cpp": "// A.\n" for k in range(26)}, "spirv", "files at one level")

    def test_upward_include_between_rooms_of_the_runtime(self):
        self.expect({"runtime/core/a.h": '// A.\n#pragma once\n#include "../graph/b.h"\n',
                     "runtime/graph/b.h": "// B.\n#pragma once\n"}, "runtime/core/a.h", "upward")

    def test_table_of_names_needs_tests_that_exist(self):
        table = "# L\n\n| Warp | here | test |\n|---|---|---|\n| `a` | `a` | `Suite.here` |\n| `b` | `b` | `Suite.gone` |\n"
        test = {"tests/device/a.cpp": "// A.\nTEST_P(Suite, here) {}\n"}
        self.expect({"docs/language.md": table, **test}, "docs/language.md", "no test `Suite.gone`")
        self.assertEqual(self.problems({"docs/language.md": table.replace("gone", "here"), **test}), [])

    def test_upward_include_inside_frontend(self):
        self.expect({"frontend/support/a.h": '// A.\n#pragma once\n#include "../types/vec.h"\n'},
                    "frontend/support/a.h", "upward")

    def test_new_folder_of_frontend_needs_a_place(self):
        self.expect({"frontend/misc/a.h": '// A.\n#pragma once\n#include "../types/vec.h"\n'},
                    "frontend/misc/a.h", "no place in the order")

    def test_list_of_scalar_types_counts_with_types(self):
        type_h = "// Scalars.\n#pragma once\n"
        self.assertEqual(self.problems({"frontend/ir/type.h": type_h, "frontend/types/s.h":
                                        '// S.\n#pragma once\n#include "../ir/type.h"\n'}), [])
        self.expect({"frontend/ir/type.h": type_h + '#include "verify.h"\n',
                     "frontend/ir/verify.h": "// V.\n#pragma once\n"}, "frontend/ir/type.h", "upward")

    def test_backends_stand_side_by_side(self):
        self.expect({"backends/reference/r.h": "// R.\n#pragma once\n",
                     "backends/vulkan/a.cpp": '// A.\n#include "../reference/r.h"\n'},
                    "backends/vulkan/a.cpp", "side by side")

    def test_backends_on_the_host_share_a_room(self):
        host = {"backends/host/h.h": "// H.\n#pragma once\n"}
        self.assertEqual(self.problems(host | {"backends/reference/a.cpp": '// A.\n#include "../host/h.h"\n'}), [])
        self.expect({"backends/reference/r.h": "// R.\n#pragma once\n",
                     "backends/host/a.cpp": '// A.\n#include "../reference/r.h"\n'},
                    "backends/host/a.cpp", "side by side")

    def test_shared_backend_file_includes_no_backend(self):
        self.expect({"backends/reference/r.h": "// R.\n#pragma once\n",
                     "backends/a.h": '// A.\n#pragma once\n#include "reference/r.h"\n'}, "backends/a.h", "upward")

    def test_include_of_a_test(self):
        self.expect({"tests/a.h": "// A.\n#pragma once\n", "runtime/a.cpp": '// A.\n#include "../tests/a.h"\n'},
                    "runtime/a.cpp", "not a folder of the library")

    def test_include_that_is_not_relative(self):
        self.expect({"runtime/a.cpp": "// A.\n#include <weft/weft.h>\n"}, "runtime/a.cpp", "relative")
        self.expect({"runtime/a.cpp": '// A.\n#include "runtime/weft.h"\n'}, "runtime/a.cpp", "no such file")

    def test_include_in_a_comment_is_none(self):
        self.assertEqual(self.problems({"spirv/a.cpp": '// A.\n// #include "../runtime/weft.h"\n'}), [])

    def test_length(self):
        text = "// A.\n" + "int a();\n" * lint.MAX_LINES
        self.expect({"runtime/a.cpp": text}, "runtime/a.cpp", "801 lines")
        self.assertEqual(self.problems({"runtime/a.def": text}), [])

    def test_purpose_line(self):
        self.expect({"runtime/a.cpp": "#include <vector>\n"}, "runtime/a.cpp", "what the file is for")
        self.expect({"tests/a.sh": "#!/usr/bin/env bash\nset -e\n"}, "tests/a.sh", "what it is for")

    def test_pragma_once(self):
        self.expect({"runtime/a.h": "// A.\nint a();\n"}, "runtime/a.h", "#pragma once")

    def test_words(self):
        for word in lint.FORBIDDEN_WORDS:
            self.expect({"docs/a.md": f"# A\n\n{word}: later\n"}, "docs/a.md", word)

    def test_platform(self):
        for text in ("#include <unistd.h>", "#include <sys/mman.h>", "#ifdef _WIN32\n#endif", 'auto e = std::getenv("A");',
                     'auto l = dlopen("a", 0);', "void f() { _mm_pause(); }"):
            self.expect({"runtime/a.cpp": f"// A.\n{text}\n"}, "runtime/a.cpp", "platform")
        self.assertEqual(self.problems({"runtime/a.cpp": "// A: getenv() is not called.\n"}), [])

    def test_operation_without_verifier_rule(self):
        self.expect({"frontend/ir/verify.cpp": "// Op::load is only mentioned.\n"}, "frontend/ir/ops.def", "verifier")

    def test_operation_without_interpreter_case(self):
        self.expect({"frontend/ir/evaluate.cpp": "// None.\nint f() { return int(Op::add_more); }\n"},
                    "frontend/ir/ops.def", "add: no case in the interpreter")

    def test_operation_without_emitter_case(self):
        self.expect({"spirv/emit.cpp": "// Emitter.\nint f() { return int(Op::add); }\n"},
                    "frontend/ir/ops.def", "load: no case in the SPIR-V emitter")
        self.expect({"llvm/emit.cpp": "// Emitter.\nint f() { return int(Op::add); }\n"},
                    "frontend/ir/ops.def", "load: no case in the LLVM emitter")

    def test_operation_without_spread(self):
        self.expect({"frontend/ir/ops.def": OPS.replace(", operands", "")}, "frontend/ir/ops.def", "7 columns")
        self.expect({"frontend/ir/ops.def": OPS.replace("memory", "unsure")}, "frontend/ir/ops.def", "spread")

    def test_every_backend_that_emits_is_held_to_the_table(self):
        self.expect({"backends/cuda/emit.cpp": "// Emitter.\nint f() { return int(Op::add); }\n"},
                    "frontend/ir/ops.def", "load: no case in the emitter backends/cuda")

    def test_a_backend_that_emits_nothing_is_not(self):
        self.assertEqual(self.problems({"backends/cuda/driver.cpp": "// Driver.\nint f() { return 1; }\n"}), [])

    def test_operation_without_derivative(self):
        self.expect({"frontend/ir/ops.def": OPS.replace(", differentiable", "")}, "frontend/ir/ops.def", "7 columns")
        self.expect({"frontend/ir/ops.def": OPS.replace("structural", "unsure")}, "frontend/ir/ops.def", "derivative")

    def test_differentiable_operation_without_rule(self):
        self.expect({"frontend/adjoint/rules.cpp": "// Rules.\nint f() { return 0; }\n"},
                    "frontend/ir/ops.def", "add: differentiable without a rule")

    def test_table_that_is_missing_or_empty(self):
        self.expect({"frontend/ir/ops.def": None}, "frontend/ir/ops.def", "missing")
        self.expect({"frontend/ir/ops.def": "// Nothing.\n"}, "frontend/ir/ops.def", "no operation")

    def test_format(self):
        if not (lint.shutil.which("clang-format-14") or lint.shutil.which("clang-format")):
            self.skipTest("no clang-format")
        found = self.problems({".clang-format": "BasedOnStyle: Google\n", "runtime/a.cpp": "// A.\nint   a( ) ;\n"})
        self.assertTrue(any(p.startswith("runtime/a.cpp:2") for p in found) or not found, found)

    def test_build_trees_are_left_out(self):
        self.assertEqual(self.problems({"build/dev/a.cpp": "int a;\n", "build-x/a.h": "int a;\n"}), [])


if __name__ == "__main__":
    unittest.main()
