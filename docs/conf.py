"""The documentation site: `make docs` builds it, offline, with every warning an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import symdual

project = "symdual"
author = "the symdual authors"
version = release = symdual.__version__
project_copyright = "the symdual authors, under the MIT licence"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_gallery.gen_gallery",
    "site_tools.executed",
    "site_tools.evidence",
    "site_tools.docstrings",
    "site_tools.pages",
    "site_tools.formulas",
    "site_tools.links",
]
exclude_patterns = ["site_tools", "gallery/*.md"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures, be they another library's
suppress_warnings = ["config.cache"]  # the gallery's configuration holds a function
default_role = "code"
language = "en_GB"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
highlight_language = "text"
smartquotes_action = "qe"  # no dash in place of the two of an option
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures as they are written
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "symdual"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]

recorded = ("cascaded_tanks", "heat_exchanger")  # run where their recordings are
left_out = () if os.environ.get("SYMDUAL_RECORDINGS") else recorded
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/[a-z]\w*\.py",
    "ignore_pattern": "|".join(["^_", *left_out]),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "parallel": 2,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "show_api_usage": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "remove_config_comments": True,
    "thumbnail_size": (480, 320),
}
