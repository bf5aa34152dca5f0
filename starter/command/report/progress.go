package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ProgressColumn formats progress, for example as "42% (420/1000) loss 0.3".
func ProgressColumn(p *spec.Progress) string {
	if p == nil {
		return "-"
	}
	text := decimal(p.Current)
	if p.Total > 0 {
		text = fmt.Sprintf("%d%% (%s/%s)", p.Percent(), decimal(p.Current), decimal(p.Total))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Metrics)) {
		text += fmt.Sprintf(" %s=%s", name, decimal(p.Metrics[name]))
	}
	return strings.TrimSpace(text + " " + p.Message)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
