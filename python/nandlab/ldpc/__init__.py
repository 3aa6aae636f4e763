"""Frame error rates of an LDPC code: measured by Monte Carlo, part by part, and kept.

The modules in the order of use: `parts` (the frames that are kept in a folder) -> `measure` (which points are sent how
many frames) -> `page`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
