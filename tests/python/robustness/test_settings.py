"""Settings of the cache of kernels, and Pythons that the package refuses."""

import os
import subprocess
import sys

import pytest

USED = """
cache = sys.argv[2] if len(sys.argv) > 2 else ""
x = wp.ones(8, dtype=float)
wp.launch(turn, dim=8, inputs=[x, 3])
x.numpy()
"""
COUNTS = "print(*wp.get_device().native.compile_counts()[:2])\n"


def files_in(folder):
    """The files below a folder."""
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]


@pytest.fixture
def environment(tmp_path):
    """An environment without settings of the cache, in which the library's own folder is empty."""
    made = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_CACHE")}
    made["XDG_CACHE_HOME"] = str(tmp_path / "own")
    return made


def test_kernels_are_kept_in_the_given_folder(run, cpu, tmp_path, environment):
    folder = tmp_path / "cache"
    text = f"wp.config.kernel_cache_dir = {str(folder)!r}\nwp.set_device('cpu')\n" + USED + COUNTS
    assert run(text, environment=environment) == "1 0\n"
    assert files_in(folder) and not files_in(tmp_path / "own")
    assert run(text, environment=environment) == "0 1\n"


def test_kernels_are_kept_in_the_librarys_folder_without_a_setting(run, cpu, tmp_path, environment):
    run("wp.set_device('cpu')\n" + USED, environment=environment)
    assert files_in(tmp_path / "own")


def test_no_kernels_are_kept_if_the_setting_says_so(run, cpu, tmp_path, environment):
    folder = tmp_path / "cache"
    text = f"wp.config.kernel_cache_dir = {str(folder)!r}\nwp.config.cache_kernels = False\nwp.set_device('cpu')\n"
    for _ in range(2):
        assert run(text + USED + COUNTS, environment=environment) == "1 0\n"
    assert not files_in(folder) and not files_in(tmp_path / "own")


def test_a_folder_that_cannot_be_made_costs_the_cache_alone(run, cpu, tmp_path, environment):
    file = tmp_path / "file"
    file.write_text("in the way")
    text = f"wp.config.kernel_cache_dir = {str(file)!r}\nwp.set_device('cpu')\n" + USED + "print(x.shape)\n"
    assert run(text, environment=environment, said="the cache cannot keep") == "(8,)\n"


FREE_THREADED = """
import sys
import sysconfig

asked = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else asked(name)
sys._is_gil_enabled = lambda: False
try:
    import weft
except ImportError as error:
    print(error)
assert "weft._weft" not in sys.modules and "numpy" not in sys.modules
"""


def test_a_free_threaded_python_is_refused_by_name():
    done = subprocess.run([sys.executable, "-c", FREE_THREADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "free-threaded" in done.stdout and "\n" not in done.stdout.strip()
