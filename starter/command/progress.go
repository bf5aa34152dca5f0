package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// progressColumn says "42% (420/1000) loss 0.3".
func progressColumn(p *spec.Progress) string {
	if p == nil {
		return "-"
	}
	text := decimal(p.Current)
	if p.Total > 0 {
		text = fmt.Sprintf("%d%% (%s/%s)", percent(p), decimal(p.Current), decimal(p.Total))
	}
	return strings.TrimSpace(text + " " + p.Message)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func percent(p *spec.Progress) int { return int(math.Floor(100 * min(1, p.Current/p.Total))) }

// progressLine says " · 40..55%, 3m10s left" of the tasks that run and say how
// far they are. The time left is that of the slowest, from how long its process
// has taken so far.
func progressLine(s *starter.Status, now time.Time) string {
	least, most := 101, -1
	var left time.Duration
	for _, t := range s.Tasks {
		p := t.Progress
		if t.State == spec.TaskEnded || p == nil || p.Total <= 0 {
			continue
		}
		least, most = min(least, percent(p)), max(most, percent(p))
		if took := now.Sub(t.Started); !t.Started.IsZero() && took > 0 && p.Current > 0 {
			rest := math.Max(0, p.Total-p.Current) / p.Current * took.Seconds()
			left = max(left, time.Duration(min(rest, math.MaxInt32)*float64(time.Second)))
		}
	}
	if most < 0 {
		return ""
	}
	text := fmt.Sprintf(" · %d%%", most)
	if least < most {
		text = fmt.Sprintf(" · %d..%d%%", least, most)
	}
	if left >= time.Second {
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}
