"""The source of kernels as a page, and in a notebook."""

from proton.viewer.pictures.notebook import framed
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.selection import Selection
from proton.viewer.pictures.source import SourceView
from proton.viewer.pictures.timeline import Timeline

HEIGHT = 720  # in a notebook: below 900 pixels of width the source is under the timeline


class SourcePage(SourceView):
    """The lines of a run's kernels with the timeline beside them; in a notebook it shows itself."""

    def page(self) -> str:
        """All of an HTML file."""
        return to_page(Timeline(self.tables, Selection(kernel=self.kernel)), self, is_first=True)

    def _repr_html_(self) -> str:
        return framed(self.page(), HEIGHT)
