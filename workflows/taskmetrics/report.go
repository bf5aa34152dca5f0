package taskmetrics

import (
	"bytes"
	"encoding/json"
	"time"
)

// Report is what a program reported with its progress: numbers such as a loss.
type Report struct {
	At      time.Time          `json:"at"`
	Step    float64            `json:"step"`
	Metrics map[string]float64 `json:"metrics"`
}

const (
	// Max limits the metrics in a report, and maxName the length of a metric's name, in
	// bytes.
	Max, maxName = 8, 40
	// Kept limits a process's reports.
	Kept = 160
)

// lastSecond is in the year 2106. Any two earlier times differ by less than the maximum
// [time.Duration].
const lastSecond = 1 << 32

// IsName reports whether a name is allowed for a metric. Names are also keys in command lines,
// addresses and CSV.
func IsName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// Thin returns at most most of the reports, keeping the last one of each interval. The lengths of
// intervals are powers of two, so that thinning reports repeatedly does not lose more of them. The
// reports must be in time order.
func Thin(reports []Report, most int) []Report {
	if len(reports) <= most {
		return reports
	}
	whole := reports[len(reports)-1].At.Sub(reports[0].At)
	for width := time.Millisecond; ; width *= 2 {
		if int64(whole/width) > int64(most)-2 { // both ends may lie within an interval
			continue
		}
		kept, last := reports[:0:0], int64(-1)
		for _, r := range reports {
			if interval := r.At.UnixMilli() / width.Milliseconds(); interval == last {
				kept[len(kept)-1] = r
			} else {
				kept, last = append(kept, r), interval
			}
		}
		return kept
	}
}

// Append appends a report's line to b.
func Append(b []byte, r Report) []byte {
	line, err := json.Marshal(r)
	if err != nil {
		return b // a number is not finite
	}
	return append(append(b, line...), '\n')
}

// Parse returns the reports in lines, in time order. It skips invalid lines, since another
// program may have written them.
func Parse(b []byte) (reports []Report) {
	for line := range bytes.Lines(b) {
		var r Report
		if json.Unmarshal(line, &r) != nil || len(r.Metrics) > Max || r.At.Unix() <= 0 || r.At.Unix() >= lastSecond {
			continue
		}
		valid := len(reports) == 0 || !r.At.Before(reports[len(reports)-1].At)
		for name := range r.Metrics {
			valid = valid && IsName(name)
		}
		if valid {
			reports = append(reports, r)
		}
	}
	return reports
}
