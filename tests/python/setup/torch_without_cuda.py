"""Installs PyTorch in this Python for the tests, without CUDA's libraries.

    python tests/python/setup/torch_without_cuda.py

The package index has a PyTorch for CUDA alone, whose libraries take some 3 GB more. The tests compute on the processor:
CUDA's runtime and CUPTI, which are called when torch is imported, are the real ones, and the other libraries are
stand-ins made here, whose functions end the process when they are called. Needs a C compiler and readelf.
"""

import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

PACKAGES = ["filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec", "setuptools", "numpy"]
CUDA_PACKAGES = ["nvidia-cuda-runtime", "nvidia-cuda-cupti"]


def run(*command):
    """The output of a command."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def pip(*arguments):
    """Installs packages."""
    run(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)


def needed(library):
    """The names of the libraries that one needs."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", library))


def dynamic_symbols(library):
    """The names that a library defines, and those that it wants, with the version or ""."""
    defined, wanted = set(), set()
    for line in run("readelf", "--dyn-syms", "-W", library).splitlines():
        part = line.split()
        if len(part) < 8 or not part[0].endswith(":") or part[4] == "LOCAL":
            continue
        name, _, version = part[7].partition("@")
        if part[6] != "UND":
            defined.add(name)
        elif part[4] != "WEAK":
            wanted.add((name, version.lstrip("@")))
    return defined, wanted


def version_owners(library):
    """The library that each version of wanted names belongs to."""
    owners, owner = {}, None
    for line in run("readelf", "-VW", library).splitlines():
        found = re.search(r"File: (\S+)", line)
        owner = found[1] if found else owner
        found = re.search(r"Name: (\S+)\s+Flags", line)
        if found and owner:
            owners[found[1]] = owner
    return owners


def make_library(path, names):
    """A library with functions that trap. `names` maps each version, "" for none, to the functions' names."""
    with tempfile.TemporaryDirectory() as folder:
        source, script = pathlib.Path(folder, "stand_in.c"), pathlib.Path(folder, "versions.map")
        functions = sorted({name for group in names.values() for name in group})
        source.write_text("".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in functions))
        groups = [f"{version} {{ global: {'; '.join(sorted(group))}; }};" for version, group in names.items() if version]
        script.write_text("\n".join(groups) + "\n")
        versions = [f"-Wl,--version-script={script}"] if groups else []
        run("cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{path.name}", *versions, "-o", str(path), str(source))


def make_stand_ins(site):
    """Makes what torch needs and what is not there, beside its own libraries."""
    own = sorted((site / "torch" / "lib").glob("*.so*"))
    others = sorted((site / "nvidia").glob("**/*.so*"))
    present = {library.name for library in own + others}
    missing = {name for library in own for name in needed(library) if name not in present}
    missing = {name for name in missing if not in_system(name)}
    defined, wanted, owners = set(), set(), {}
    for library in own:
        has, wants = dynamic_symbols(library)
        defined |= has
        wanted |= wants
        owners |= version_owners(library)
    for library in others:
        defined |= dynamic_symbols(library)[0]
    groups = {name: {} for name in missing}
    for name, version in wanted:
        if version and owners.get(version) in missing:
            groups[owners[version]].setdefault(version, set()).add(name)
        elif not version and name not in defined and is_function_of_cuda(name):
            for names in groups.values():  # it does not say which library it is of
                names.setdefault("", set()).add(name)
    for name, names in groups.items():
        make_library(site / "torch" / "lib" / name, names)
    return sorted(missing)


def is_function_of_cuda(name):
    """Whether a name without a version belongs to one of CUDA's libraries: the others have versions, or are C++'s."""
    return re.match(r"(cu|nccl|nvshmem|nvrtc|nvJit)", name) is not None


def in_system(name):
    """Whether the system has a library."""
    import ctypes

    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def works():
    """Whether torch is there and computes a gradient."""
    code = "import torch; torch.ones(2, requires_grad=True).sum().backward()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def main():
    if works():
        return
    pip(*PACKAGES, *CUDA_PACKAGES)
    pip("--no-deps", "torch")
    made = make_stand_ins(pathlib.Path(sysconfig.get_paths()["purelib"]))
    if not works():
        sys.exit("torch is installed, and cannot be used")
    print(f"torch is installed; stand-ins: {', '.join(made) or 'none'}")


if __name__ == "__main__":
    main()
