"""Sphinx's configuration of the documentation's site; tools/docs_site.py puts it beside the pages."""

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from merton import __version__

project = "Merton"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"Merton {version}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # summaries are fetched, which a browser refuses for pages in a folder
html_last_updated_fmt = None

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
suppress_warnings = ["ref.python"]  # two classes of one name; types are written without their modules
default_role = "literal"  # docstrings write `name` for code
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_attr_annotations = False  # a type such as numpy.str_ would be read as a link
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries = False  # a third of the time of a build; modules are headings, and names are in the search


def setup(app: Sphinx) -> None:
    """Blocks in languages that Pygments does not know are shown as they are."""
    for language in ("csv", "mermaid"):
        app.add_lexer(language, TextLexer)
