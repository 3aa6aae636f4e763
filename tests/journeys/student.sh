#!/usr/bin/env bash
# A student reproduces a figure of a paper in an empty folder. Needs nandlab with its extra `figures`.
set -euo pipefail

nandlab --help
nandlab examples

# The study at its smoke size; without --smoke it is the full one, of hours.
nandlab study rcopyback --smoke --workers 2 --out rcopyback
test -s rcopyback/report.html
ls rcopyback/figures/*.svg rcopyback/figures/*.pdf

# The reported and the measured value of each claim.
nandlab study rcopyback --smoke --workers 2 --out rcopyback --json > claims.json
grep -q '"verdict"' claims.json
