"""The Python of the documentation: the blocks of each page run in order, as one program."""

import importlib.util
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python *([\w ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_programs_of_a_page_run(page, tmp_path):
    before = ""
    for number, (needs, code) in enumerate(BLOCK.findall(page.read_text())):
        if any(importlib.util.find_spec(name) is None for name in needs.split()):
            continue  # blocks of other libraries do not need it
        # Kernels need a file with their source; later blocks see the names of earlier ones.
        name = f"page_{page.stem}_{number}"
        file = tmp_path / f"{name}.py"
        file.write_text(before + code)
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        before += f"from {name} import *\n"


def test_there_are_pages_with_programs():
    assert [page.stem for page in PAGES]
