package tasklog_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/tests/scripts"
)

// TestFoldScripts runs testdata/scripts. A script has the directives
//
//	fold tasks=N     starts the output of a run with N tasks
//	events           applies events, one a line, and shows what is shown
//
// and in events the lines
//
//	AT RANKS[e] TEXT     tasks write text to stdout, or with e to stderr; \n, \r as in Go
//	AT due               the time is AT milliseconds
//	rest                 the run has ended
func TestFoldScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		var f *tasklog.Fold
		return map[string]scripts.Directive{
			"fold": func(t *testing.T, d *datadriven.TestData) string {
				var tasks int
				d.ScanArgs(t, "tasks", &tasks)
				f = tasklog.NewFold(tasks)
				return ""
			},
			"events": func(t *testing.T, d *datadriven.TestData) string {
				return scripts.Events(t, d, func(line string) (string, error) { return foldEvent(f, line) })
			},
		}
	})
}

func foldEvent(f *tasklog.Fold, line string) (string, error) {
	var out strings.Builder
	show := func(all []tasklog.Alike) {
		for _, a := range all {
			name := strconv.Itoa(a.Rank) + ": "
			if len(a.Ranks) > 1 {
				name = a.Prefix()
			}
			fmt.Fprintf(&out, "  %s%q\n", name, a.Data)
		}
	}
	if line == "rest" {
		show(f.Rest())
		return out.String(), nil
	}
	words := strings.SplitN(line, " ", 3)
	ms, err := strconv.Atoi(words[0])
	if err != nil {
		return "", err
	}
	at := time.UnixMilli(int64(ms))
	if words[1] == "due" {
		show(f.Due(at))
	} else {
		ranks, stderr := strings.CutSuffix(words[1], "e")
		text, err := strconv.Unquote(`"` + words[2] + `"`)
		if err != nil {
			return "", err
		}
		first, last, _ := strings.Cut(ranks, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return "", err
		}
		to, err := strconv.Atoi(last)
		if err != nil {
			to = from
		}
		for rank := from; rank <= to; rank++ {
			show(f.Add(at, tasklog.Chunk{Stream: tasklog.Stream{Rank: rank, Stderr: stderr}, Data: []byte(text), Start: true}))
		}
	}
	if next, waits := f.Next(); waits {
		fmt.Fprintf(&out, "  next at %d\n", next.UnixMilli())
	}
	return out.String(), nil
}
