"""Calibrations: keys of a spec fitted to measurements of a drive, and rows that are held out and predicted.

The modules in the order of use: `measured` (rows of CSV files and of fio's results) and `keys` (keys with bounds) ->
`loads` (the load of a row as overrides of the spec) -> `model` (predictions, by runs on the workers of a study) ->
`fit` (the optimiser, profiles, correlations) -> `spec_file` (the fitted spec) -> `result` -> `page`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
