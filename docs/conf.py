"""How Sphinx builds these pages: ``sphinx-build -W docs build/docs``."""

project = "tensorlang"
author = "The tensorlang authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "tensorlang"
html_copy_source = False
myst_heading_anchors = 3
