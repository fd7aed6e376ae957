#!/usr/bin/env bash
# Takes the picture in the README: the top of a report, by headless Chromium.
#
#   scripts/screenshot.sh herald-report/report.html docs/images/report.png
set -euo pipefail
page=$(realpath "$1")
picture=$(realpath -m "$2")
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1290 \
  --screenshot="$picture" "file://$page"
