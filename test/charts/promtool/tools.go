//go:build tools

// Package promtool pins the version of Prometheus whose promtool reads and tries the alert rules.
package promtool

import _ "github.com/prometheus/prometheus/cmd/promtool"
