#!/usr/bin/env python3
# The rules of the house that a compiler cannot check: layers, length, tables that cover every operation, words, format.
"""Usage: lint.py [ROOT]. Prints one line for each broken rule and exits 1 if there is any."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MAX_LINES = 800
SOURCE_ENDINGS = (".h", ".cpp", ".def")
SCRIPT_ENDINGS = (".py", ".sh", ".cmake")
TEXT_ENDINGS = SOURCE_ENDINGS + SCRIPT_ENDINGS + (".md", ".txt", ".json", ".in")

# A kernel travels through the folders in this order: a folder includes only folders of a lower number.
LAYERS = {"frontend": 0, "spirv": 1, "llvm": 1, "backends": 2, "runtime": 3, "loader": 4, "viewer": 5}
FRONTEND_LAYERS = {"support": 0, "types": 1, "ir": 2, "passes": 3, "language": 4, "library": 5, "real": 6, "kernels": 7,
                   "adjoint": 8}
# Rooms of the runtime; its headers at the top, and detail/, which their templates need, come before all of them.
RUNTIME_LAYERS = {"detail": 0, "core": 1, "work": 2, "arrays": 3, "reports": 3, "launch": 4, "graph": 5, "tape": 6,
                  "exchange": 7, "algorithms": 7, "geometry": 8, "volume": 9}
# Files that count as part of another folder: the list of scalar types, which host types and IR share (docs/decisions.md).
FILE_LAYERS = {"frontend/ir/type.h": "types"}

# The state of a thread that the runtime has (docs/decisions.md), and the longest function there.
CONTEXT_FILE = "runtime/core/context.cpp"
# Files that read a thread's context directly; all others ask for what they need of it (a stream, a capture, a recorder).
CONTEXT_READERS = ("runtime/core/", "runtime/work/", "runtime/reports/profile_log.cpp",
                   "runtime/tape/outside_changes.cpp")
MAX_FUNCTION_LINES = 80
# A longer function needs a written reason.
LONG_FUNCTION = 60
# A reader finds the room for a change from a folder's listing.
MAX_FILES = 25
FUNCTION = re.compile(
    r"^( {0,2})(?!namespace|class|struct|enum|union|using|extern|if|for|while|switch|do|else|try|return|case)"
    r"(?=[^(=]*[ :*&][\w:~]+\()[A-Za-z_~][^;{}]*(?:\{\}[^;{}]*)*\{$", re.MULTILINE)

# A docstring tells the kinds and the usual causes of a call's errors; the page of docs/ on the call tells the rest.
MAX_ERROR_LINES = 3
DOCSTRING_LINE = re.compile(r"^[ \t]*///(?!<)(.*)$")
ERRORS = re.compile(r"\bErrors\b[^:.]*:")  # also with words between, as in "Errors of both calls:"
NEXT_PARAGRAPH = re.compile(r"^\s*(?:$|\\|(?:Errors|Cost|Source):|Gradient[:,])")

FORBIDDEN_WORDS = ("TODO", "FIXME", "XXX")
PLATFORM_FILE = "frontend/support/platform.cpp"
# Processors, limits, libraries, and code made at run time have files of their own.
PLATFORM_FILES = (PLATFORM_FILE, "frontend/support/platform_processor.cpp", "frontend/support/platform_limits.cpp",
                  "frontend/support/platform_library.cpp", "frontend/support/platform_code.cpp",
                  "frontend/support/platform_windows.h")
PLATFORM = re.compile(
    r"#\s*include\s*<(?:unistd|windows|dlfcn|fcntl|io|direct|process|sys/\w+|mach-o/\w+|pthread|spawn)\.h>"
    r"|\b(?:getenv|setenv|_putenv\w*|dlopen|dlsym|dlclose|LoadLibrary\w*|GetProcAddress|mkdir|_mkdir|getpid|_getpid"
    r"|isatty|_isatty|mkstemp|fork|popen|system)\s*\("
    r"|\b(?:_WIN32|__linux__|__APPLE__|_mm_(?:getcsr|setcsr|pause))\b")

OP_ROW = re.compile(r"^\s*WEFT_OP\(([^)]*)\)", re.MULTILINE)
OPERAND_CLASSES = {"any", "numeric", "integer", "real", "logical", "boolean", "special"}
RESULTS = {"same", "boolean", "given", "none"}
EFFECTS = {"pure", "reads", "writes", "control"}
DERIVATIVES = {"differentiable", "nondifferentiable", "structural"}
SPREADS = {"none", "launch", "workgroup", "subgroup", "number", "operands", "pooled", "exchanged", "memory", "thread",
           "control"}


def project_files(root):
    """Every file of the project, as a path relative to its root; build trees and hidden folders left out."""
    for folder, names, files in os.walk(root):
        relative = Path(folder).relative_to(root)
        names[:] = sorted(n for n in names if n != "__pycache__" and n != ".git" and
                          not (relative == Path(".") and n.startswith("build")))
        for name in sorted(files):
            yield relative / name


def without_comments(text):
    """C++ text with comments blanked and lines kept; strings stay."""
    def blank(match):
        found = match.group(0)
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.DOTALL)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


class Lint:
    def __init__(self, root):
        self.root = Path(root).resolve()
        self.problems = []
        self.notes = []
        self.files = list(project_files(self.root))
        self.texts = {}
        for path in self.files:
            if path.suffix in TEXT_ENDINGS:
                try:
                    self.texts[path] = (self.root / path).read_text(encoding="utf-8")
                except UnicodeDecodeError:
                    self.report(path, 1, "not UTF-8")
        self.code = {p: without_comments(t) for p, t in self.texts.items() if p.suffix in SOURCE_ENDINGS}

    def report(self, path, line, message):
        self.problems.append(f"{path}:{line}: {message}")

    def run(self):
        self.check_includes()
        self.check_files()
        self.check_folders()
        self.check_words()
        self.check_platform()
        self.check_runtime()
        self.check_functions()
        self.check_docstrings()
        self.check_operations()
        self.check_table_of_names()
        self.check_format()
        return self.problems

    # Layers

    def check_includes(self):
        for path, text in self.code.items():
            if path.parts[0] not in LAYERS:
                continue
            for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', text, re.MULTILINE):
                line, name = line_of(text, match.start()), match.group(2)
                if match.group(1) == "<":
                    if name.startswith("weft/"):
                        self.report(path, line, f"<{name}>: includes inside the project are relative")
                    continue
                target = Path(os.path.normpath(path.parent / name))
                if not (self.root / target).is_file():
                    self.report(path, line, f'"{name}": no such file beside this one (third-party headers take <>)')
                    continue
                message = self.upward(path, target)
                if message:
                    self.report(path, line, f"upward include: {message}")

    @staticmethod
    def upward(path, target):
        """Why `path` may not include `target`, or None."""
        here, there = path.parts, target.parts
        if there[0] not in LAYERS:
            return f"{there[0]} is not a folder of the library"
        if LAYERS[there[0]] != LAYERS[here[0]]:
            return f"{there[0]} lies below {here[0]}" if LAYERS[there[0]] > LAYERS[here[0]] else None
        if here[0] == "frontend" and len(here) > 2 and len(there) > 2:
            mine = FILE_LAYERS.get(path.as_posix(), here[1])
            other = FILE_LAYERS.get(target.as_posix(), there[1])
            for folder in (mine, other):
                if folder not in FRONTEND_LAYERS:
                    return f"frontend/{folder} has no place in the order (tests/lint/lint.py)"
            below = FRONTEND_LAYERS[other] > FRONTEND_LAYERS[mine]
            return f"frontend/{other} lies below frontend/{mine}" if below else None
        if here[0] == "runtime" and len(here) > 2 and len(there) > 2:
            for folder in (here[1], there[1]):
                if folder not in RUNTIME_LAYERS:
                    return f"runtime/{folder} has no place in the order (tests/lint/lint.py)"
            below = RUNTIME_LAYERS[there[1]] > RUNTIME_LAYERS[here[1]]
            return f"runtime/{there[1]} lies below runtime/{here[1]}" if below else None
        if here[0] == "backends":
            if len(here) == 2 and len(there) > 2:
                return f"backends/{there[1]} lies below what all backends share"
            # Devices on the host share the room host/.
            if len(here) > 2 and len(there) > 2 and there[1] not in (here[1], "host"):
                return f"backends/{here[1]} and backends/{there[1]} stand side by side"
        return None

    # Files

    def check_files(self):
        for path, text in self.texts.items():
            lines = text.split("\n")
            if path.suffix in (".h", ".cpp") + SCRIPT_ENDINGS and text.count("\n") > MAX_LINES:
                self.report(path, MAX_LINES + 1, f"{text.count(chr(10))} lines; at most {MAX_LINES}")
            if path.suffix in SOURCE_ENDINGS:
                if not re.match(r"// \S", lines[0]):
                    self.report(path, 1, "the first line does not say what the file is for (// ...)")
                if path.suffix == ".h" and "#pragma once" not in text:
                    self.report(path, 1, "a header without #pragma once")
            elif path.suffix in SCRIPT_ENDINGS:
                first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
                # A module of Python's may say it in its documentation, which help() shows.
                opening = r'(# |""")\S' if path.suffix == ".py" else r"# \S"
                if not re.match(opening, first):
                    self.report(path, 1, "the file does not open with a line that says what it is for (# ...)")

    def check_folders(self):
        folders = {}
        for path in self.files:
            folders.setdefault(path.parent, []).append(path)
        for folder, files in folders.items():
            if len(files) > MAX_FILES:
                self.report(folder, 1, f"{len(files)} files at one level; at most {MAX_FILES}")

    def check_words(self):
        words = re.compile(r"\b(?:" + "|".join(FORBIDDEN_WORDS) + r")\b")
        own = Path("tests/lint")
        for path, text in self.texts.items():
            if path.parent == own:
                continue
            for match in words.finditer(text):
                self.report(path, line_of(text, match.start()), f"{match.group(0)}: finish it or open an issue")

    def check_platform(self):
        for path, text in self.code.items():
            if path.parts[0] not in LAYERS or path.as_posix() in PLATFORM_FILES:
                continue
            for match in PLATFORM.finditer(text):
                found = " ".join(match.group(0).split()).rstrip("( ")
                self.report(path, line_of(text, match.start()), f"{found}: the platform is asked in {PLATFORM_FILE} only")

    def check_runtime(self):
        for path, text in self.code.items():
            if path.parts[0] != "runtime":
                continue
            for match in re.finditer(r"\bthread_local\b", text):
                if path.as_posix() != CONTEXT_FILE:
                    self.report(path, line_of(text, match.start()), f"thread_local: a thread's state is in {CONTEXT_FILE}")
            if path.as_posix().startswith(CONTEXT_READERS):
                continue
            for match in re.finditer(r"\bContext::here\(\)", text):
                self.report(path, line_of(text, match.start()),
                            "Context::here(): ask for the stream, the capture or the recorder instead")

    def check_functions(self):
        for path, text in self.code.items():
            if path.parts[0] not in LAYERS:
                continue
            lines = self.texts[path].split("\n")
            for match in FUNCTION.finditer(text):
                end = text.find("\n" + match.group(1) + "}", match.end())
                length = text.count("\n", match.end(), end) if end >= 0 else 0
                if length <= LONG_FUNCTION or "(" not in match.group(0):
                    continue
                line = line_of(text, match.start())
                if path.parts[0] == "runtime" and length > MAX_FUNCTION_LINES:
                    self.report(path, line, f"a function of {length} lines; at most {MAX_FUNCTION_LINES} in the runtime")
                elif not self.has_reason(lines, line - 1):
                    self.report(path, line, f"a function of {length} lines; above {LONG_FUNCTION} a comment before it "
                                            f"says why (\"In one piece: ..\")")

    @staticmethod
    def has_reason(lines, at):
        while at > 0 and re.match(r" *(//|template\b|requires\b)", lines[at - 1]):
            at -= 1
            if "In one piece:" in lines[at]:
                return True
        return False

    # Docstrings

    def check_docstrings(self):
        for path, text in self.texts.items():
            if path.suffix != ".h":
                continue
            matches = [DOCSTRING_LINE.match(line) for line in text.split("\n")]
            words = [m.group(1) if m else "" for m in matches]  # empty, as between paragraphs, where no docstring is
            for start, first in enumerate(words):
                if not ERRORS.search(first):
                    continue
                length = 1
                while start + length < len(words) and not NEXT_PARAGRAPH.match(words[start + length]):
                    length += 1
                if length > MAX_ERROR_LINES:
                    self.report(path, start + 1, f"\"Errors:\" of {length} lines; at most {MAX_ERROR_LINES}, "
                                                 f"the rest goes to docs/")

    # Operations

    def sources_of(self, *folders):
        """The code of all .cpp files below the folders (or of the files) named, in one text."""
        return "\n".join(t for p, t in self.code.items() if p.suffix == ".cpp" and
                         any(p.as_posix() == f or p.as_posix().startswith(f + "/") for f in folders))

    def check_operations(self):
        table = Path("frontend/ir/ops.def")
        if table not in self.code:
            self.report(table, 1, "the table of operations is missing")
            return
        text = self.code[table]
        tables = [("the interpreter (frontend/ir/evaluate.cpp, backends/reference)",
                   self.sources_of("frontend/ir/evaluate.cpp", "backends/reference")),
                  ("the SPIR-V emitter (spirv)", self.sources_of("spirv")),
                  ("the LLVM emitter (llvm)", self.sources_of("llvm"))]
        # The reference device interprets, the Vulkan device takes what spirv emits, and the native one what llvm emits.
        for path in sorted({p.parts[1] for p in self.code if p.parts[0] == "backends" and len(p.parts) > 2 and
                            p.name.startswith("emit")}):
            if path not in ("reference", "vulkan", "native"):
                tables.append((f"the emitter backends/{path}", self.sources_of(f"backends/{path}")))
        verifier = self.sources_of("frontend/ir/verify.cpp")
        adjoint = self.sources_of("frontend/adjoint")
        rows = 0
        for match in OP_ROW.finditer(text):
            rows += 1
            line = line_of(text, match.start())
            fields = [f.strip() for f in match.group(1).split(",")]
            name = fields[0]
            if len(fields) != 7:
                self.report(table, line, f"{name}: a row has 7 columns, this one {len(fields)}")
                continue
            for value, allowed, column in ((fields[2], OPERAND_CLASSES, "operand class"), (fields[3], RESULTS, "result"),
                                           (fields[4], EFFECTS, "effect"), (fields[5], DERIVATIVES, "derivative"),
                                           (fields[6], SPREADS, "spread")):
                if value not in allowed:
                    self.report(table, line, f"{name}: unknown {column} \"{value}\"")
            case = re.compile(r"\bOp::" + re.escape(name) + r"\b")
            if fields[2] == "special" and not case.search(verifier):
                self.report(table, line, f"{name}: no rule in the verifier (frontend/ir/verify.cpp)")
            for where, code in tables:
                if not case.search(code):
                    self.report(table, line, f"{name}: no case in {where}")
            if adjoint and fields[5] == "differentiable" and not case.search(adjoint):
                self.report(table, line, f"{name}: differentiable without a rule in frontend/adjoint")
        if rows == 0:
            self.report(table, 1, "no operation")

    # The table of names: each row names a test that exists

    def check_table_of_names(self):
        page = Path("docs/language.md")
        tests = {f"{suite}.{name}" for code in self.code.values()
                 for suite, name in re.findall(r"\bTEST(?:_P|_F)?\((\w+),\s*(\w+)\)", code)}
        text = self.texts.get(page, "")
        start = text.find("\n| Warp |")
        if start < 0:
            return
        for number, row in enumerate(text[start + 1:].split("\n"), line_of(text, start + 1)):
            if not row.startswith("|"):
                break
            last = row.rstrip("| ").rpartition("|")[2].strip()
            if last in ("test", "---"):
                continue
            if last.strip("`") not in tests:
                self.report(page, number, f"no test {last}")

    # Format

    def check_format(self):
        tool = shutil.which("clang-format-14") or shutil.which("clang-format")
        paths = [p for p in self.code if p.suffix in (".h", ".cpp")]
        if not tool or not paths or not (self.root / ".clang-format").exists():
            self.notes.append("format not checked: no clang-format")
            return
        version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
        if not re.search(r"version 14\.", version):
            self.notes.append(f"format not checked: it is that of clang-format 14, here is {version.strip()}")
            return
        result = subprocess.run([tool, "--dry-run", "--style=file", *map(str, paths)], cwd=self.root,
                                capture_output=True, text=True)
        seen = set()
        for match in re.finditer(r"^(.*?):(\d+):\d+: (?:warning|error): ", result.stderr, re.MULTILINE):
            if match.group(1) not in seen:
                seen.add(match.group(1))
                self.report(match.group(1), match.group(2), "not as clang-format writes it (clang-format -i)")
        if result.returncode and not seen:
            self.report(".clang-format", 1, f"clang-format failed: {result.stderr.strip()}")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    lint = Lint(root)
    problems = lint.run()
    for line in lint.notes + problems:
        print(line)
    print(f"{len(lint.texts)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
