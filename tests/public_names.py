# Checks that `using namespace weft` brings exactly the names of docs/names.md. The declarations in namespace weft are
# read from the public headers as the compiler's preprocessor expands them.
# Usage: public_names.py COMPILER INCLUDE_FOLDER DOCUMENT, or without the document to print the names
import re
import subprocess
import sys

kHeaders = [
    "weft/weft.h",
    "weft/algorithms.h",
    "weft/geometry.h",
    "weft/volume.h",
    "weft/vulkan.h",
    "weft/runtime/graph.h",
    "weft/runtime/profile.h",
    "weft/runtime/dlpack.h",
]
TOKEN = re.compile(
    r'R"\((?:.|\n)*?\)"|"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)+'" + r"|[A-Za-z_]\w*|\d[\w.']*|::|->|&&|\|\||==|\S"
)
kNoNames = {"const", "constexpr", "inline", "static", "auto", "operator", "requires", "noexcept", "explicit", "typename"}


def own_text(compiler, include, headers):
    """The headers' text without comments, macros, and the headers of others."""
    source = "".join(f"#include <{h}>\n" for h in headers)
    run = subprocess.run([compiler, "-std=c++20", "-E", "-I", include, "-x", "c++", "-"], input=source, capture_output=True, text=True, check=True)
    lines, ours = [], False
    for line in run.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker[1].startswith(include)
        elif ours and not line.startswith("#"):
            lines.append(line)
    return "\n".join(lines)


def statements(tokens):
    """Pairs (namespace, statement) of all that stands in a namespace; bodies in braces are left out."""
    scopes, statement, depth = [], [], 0
    k = 0
    while k < len(tokens):
        token = tokens[k]
        if depth:
            depth += (token == "{") - (token == "}")
            if not depth:
                statement.append("{}")
                # The body of a function ends it; a type's or an initialiser's is followed by a semicolon.
                if k + 1 < len(tokens) and tokens[k + 1] != ";" and not is_open(statement, tokens[k + 1]):
                    yield "::".join(scopes), statement
                    statement = []
        elif token == "{":
            if "namespace" in statement and "using" not in statement:
                scopes.append("".join(statement[statement.index("namespace") + 1 :]))
                statement = []
            else:
                depth = 1
        elif token == "}":
            scopes.pop()
            statement = []
        elif token == ";":
            if statement:
                yield "::".join(scopes), statement
            statement = []
        else:
            statement.append(token)
        k += 1


def is_open(statement, after):
    """Whether a statement goes on after braces: T f(X x = {}), concept C = requires { .. } && .., requires { .. } T f();"""
    if after in ("&&", "||", ",", ")", ">", "(", "==", "."):
        return True
    text = without_template(statement)
    return statement[0] == "template" and (not text or text[0] == "requires" and "(" not in text[1:] and len(text) < 4)


def without_template(statement):
    """The statement after template <...> and a requires clause in parentheses or of names."""
    k = 0
    while k < len(statement) and statement[k] == "template":
        k = after_brackets(statement, k + 1, "<", ">")
    return statement[k:]


def after_brackets(tokens, k, opening, closing):
    depth = 0
    while k < len(tokens):
        depth += (tokens[k] == opening) - (tokens[k] == closing)
        k += 1
        if depth == 0:
            break
    return k


def after_requires(s):
    """The statement after a requires clause at its beginning: operands in parentheses, or concepts with arguments."""
    k = 1
    while True:
        while s[k] == "!":
            k += 1
        if s[k] == "(":
            k = after_brackets(s, k, "(", ")")
        elif s[k] == "requires":
            k += 1
            if s[k] == "(":
                k = after_brackets(s, k, "(", ")")
            k += 1  # the braces
        else:
            while True:
                k += 1
                if s[k] == "<":
                    k = after_brackets(s, k, "<", ">")
                if s[k] != "::":
                    break
                k += 1
        if s[k] not in ("&&", "||"):
            return s[k:]
        k += 1


def name_of(statement):
    """What a statement declares, or None: a specialisation, a guide, a declaration of use, an operator."""
    s = without_template(statement)
    if s and s[0] == "requires":
        s = after_requires(s)
    if not s or s[0] in ("static_assert", "friend", "extern") or "operator" in s:
        return None
    if s[0] == "using":
        return s[1] if "=" in s else None if s[1] == "namespace" else s[-1]
    if s[0] == "concept":
        return s[1]
    if s[0] == "template":  # an instantiation
        return None
    if s[0] in ("class", "struct", "union", "enum"):
        k = 1
        while s[k] in ("class", "struct", "[", "]", "nodiscard", "final", "alignas"):
            k += 1
        # A variable or a function of an elaborated type is a declaration like others.
        if k + 1 == len(s) or s[k + 1] in ("{}", ":", "final"):
            return s[k]
        if s[k + 1] == "<":
            return None
    depth, before = 0, None
    for k, token in enumerate(s):
        if token == "<":
            depth += 1
        elif token == ">":
            depth -= 1
        elif depth == 0 and token in ("(", "=", "{}", "["):
            if token == "(" and before in ("decltype", "alignas", "requires", "noexcept"):
                pass
            elif token == "(" and s[k + 2 : k + 4] == [")", "("]:  # (min)(..)
                return s[k + 1]
            elif before and re.match(r"[A-Za-z_]\w*$", before) and before not in kNoNames:
                if k >= 2 and s[k - 2] == "::":  # of a class
                    return None
                return before
            elif token == "(" and before == ">":
                return None
        before = token
    return s[-1] if re.match(r"[A-Za-z_]\w*$", s[-1]) and len(s) > 1 else None


def names_of(text):
    found = set()
    for scope, statement in statements(TOKEN.findall(text)):
        if scope.startswith("weft::") and scope.count("::") == 1:
            found.add(scope.split("::")[1])
        if scope == "weft" and (name := name_of(statement)):
            found.add(name)
    return found


def listed_in(document):
    """The names in code of the list: all code after the first heading of the second level."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    names = [name for code in re.findall(r"`([^`]*)`", text[text.index("\n## ") :]) for name in code.split()]
    return set(names), sorted({name for name in names if names.count(name) > 1})


# Each form of a declaration, and text that declares no new name.
SAMPLE = """
namespace other { int not_ours; }
namespace weft {
class Declared; struct Given { int member = 3; void inner() {} }; enum class Kind { one };
template <class T> requires(sizeof(T) > 1) && Small<T> class Bounded final : public Given {};
template <> struct Given<int> {}; template <class T> Bounded(T) -> Bounded<T>;
template <class T> concept Small = requires(T t) { { t + t } -> Same<T>; } && sizeof(T) < 4;
template <class... T> requires(any<T...> || Small<T>) auto constrained(const T&... a) { return (a + ...); }
template <class T> requires Small<T> && other::Big<T> T also(T a = {}, Given g = Given{1}) noexcept { return a; }
using Alias = Given; using other::Taken; using namespace other;
inline constexpr int kConstant = 3; extern "C" int foreign(); const char* pointer(int (*f)(int));
template <class T> inline constexpr bool is_small = [] { return true; }();
template <class T> T (parenthesised)(T a) { return a; }
[[noreturn]] void ends(); [[nodiscard]] Given* returned(); Given operator+(Given, Given); void Given::outside() {}
std::vector<Given> Given::also_outside(int i) { return {}; } static_assert(sizeof(int) == 4, "text; {");
namespace detail { struct Hidden {}; }
namespace detail::deeper { int hidden; }
}
"""
SAMPLE_NAMES = {
    *("Declared", "Given", "Kind", "Bounded", "Small", "constrained", "also", "Alias", "Taken", "kConstant", "pointer"),
    *("is_small", "parenthesised", "ends", "returned", "detail"),
}


def main():
    compiler, include, *document = sys.argv[1:]
    if wrong := names_of(SAMPLE) ^ SAMPLE_NAMES:
        print("the sample is read wrongly:", *sorted(wrong))
        return 1
    found = names_of(own_text(compiler, include, kHeaders))
    if not document:
        print(*sorted(found), sep="\n")
        return 0
    listed, twice = listed_in(document[0])
    for what, wrong in (
        ("declared in namespace weft, and not listed", found - listed),
        ("listed, and not declared", listed - found),
        ("listed twice", twice),
    ):
        if wrong:
            print(f"{what}:", *sorted(wrong))
    print(len(found), "names")
    return found != listed or bool(twice)


if __name__ == "__main__":
    sys.exit(main())
