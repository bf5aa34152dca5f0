package top_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/top"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// runOf returns a run with n tasks, one of which has failed and one of which restarts.
func runOf(id string, n int) *starter.Status {
	s := &starter.Status{RunID: id, Open: true, State: spec.RunRunning, Started: now.Add(-time.Hour)}
	for i := range n {
		s.Tasks = append(s.Tasks, starter.TaskStatus{
			TaskStatus: spec.TaskStatus{Name: fmt.Sprintf("worker-%d", i), Type: "worker", Index: i, Rank: i, Host: "node-" + strconv.Itoa(i%3), State: spec.TaskRunning},
			PID:        1000 + i,
			Usage:      &spec.LiveUsage{CPUs: 1.5, RSSBytes: 300 << 20},
			Progress:   &spec.Progress{Current: float64(i), Total: 10, Message: "loss \x1b[31m0.3"},
		})
	}
	if n > 0 {
		s.Tasks[0].LastOutput = now.Add(-10 * time.Minute)
	}
	if n > 4 {
		s.Tasks[2].State, s.Tasks[2].Exit, s.Tasks[2].PID = spec.TaskEnded, &spec.Exit{Cause: spec.CauseOrigin, ExitCode: 3}, 0
		s.Tasks[4].NextStart, s.Tasks[4].Restarts = now, 2
	}
	return s
}

func found(s top.Subject, words []string) top.Found {
	f := top.Found{Subject: s, At: now}
	switch {
	case len(words) > 0 && words[0] == "error":
		f.Err = fmt.Errorf("%s", strings.Join(words[1:], " "))
	case s.Kind == top.Runs:
		f.Runs = []starter.Summary{
			{RunID: "iris-b", Open: true, State: "running", Tasks: "worker=2", Owner: "ada@here", Started: now.Add(-90 * time.Second), LastOutput: now.Add(-20 * time.Second), Command: "python3 train.py"},
			{RunID: "iris-a", Verdict: spec.VerdictFailed, ExitCode: 3, Started: now.Add(-49 * time.Hour), Ended: now.Add(-48 * time.Hour), Command: "sh -c 'exit\n3'"},
		}
	case s.Kind == top.Tasks:
		n, _ := strconv.Atoi(words[0])
		f.Status = runOf(s.Run, n)
		f.Last = map[string]string{"worker-1": "epoch 3\tof 10"}
	case s.Kind == top.Queue:
		f.Queue = []fleet.Waiting{{Run: fleet.Run{WorkflowID: "wide"}, Position: 1, Priority: 3, Tasks: 4, Since: now.Add(-5 * time.Minute), Why: "4 slots: host a has 2"}}
	case s.Kind == top.Hosts:
		f.Hosts = []fleet.HostStatus{{Host: fleet.Host{Name: "a", Slots: 2, Version: "1"}, State: "ready", Used: 1}}
	case s.Kind == top.Output:
		for _, w := range words {
			f.Lines = append(f.Lines, "[worker-0]: "+w)
		}
	}
	return f
}

// Scripts of keys and findings produce screens; > is at the row that is chosen.
//
//	new [RUN] | size W H | keys KEY... | found [WORD...] | late RUN | note TEXT
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var m top.Model
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var wants []string
			update := func(message any) {
				var want any
				if m, want = m.Update(message); want != nil {
					wants = append(wants, strings.TrimSpace(fmt.Sprintf("%T %v", want, want)))
				}
			}
			words := strings.Fields(d.Input)
			switch d.Cmd {
			case "new":
				m = top.New(strings.Join(words, ""))
				update(top.Size{Width: 90, Height: 10})
			case "size":
				w, _ := strconv.Atoi(words[0])
				h, _ := strconv.Atoi(words[1])
				update(top.Size{Width: w, Height: h})
			case "keys":
				for _, k := range words {
					update(top.Key(k))
				}
			case "found":
				update(found(m.Subject(), words))
			case "late":
				update(found(top.Subject{Kind: top.Tasks, Run: words[0]}, []string{"5"}))
			case "note":
				update(top.Note(d.Input))
			default:
				t.Fatalf("%s: no command %s", d.Pos, d.Cmd)
			}
			s := m.View()
			for i := range s.Lines {
				mark := "  "
				if i == s.Cursor {
					mark = "> "
				}
				s.Lines[i] = strings.TrimRight(mark+s.Lines[i], " ")
			}
			return strings.Join(slices.Concat(wants, s.Lines), "\n") + "\n"
		})
	})
}

// For any keys and findings, the screen has the size of the terminal and no control characters.
func FuzzKeys(f *testing.F) {
	f.Add("1enter", uint8(20), uint8(5))
	f.Add("GG/3\b?", uint8(1), uint8(1))
	keys := []string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "esc", "l", "s", "K", "r", "x", "y", "n", "/", "?", "1", "2", "3", "backspace", "a", "é"}
	f.Fuzz(func(t *testing.T, script string, width, height uint8) {
		m := top.New("")
		m, _ = m.Update(top.Size{Width: int(width), Height: int(height)})
		for _, b := range []byte(script) {
			if int(b) < len(keys) {
				m, _ = m.Update(top.Key(keys[b]))
			} else {
				m, _ = m.Update(found(m.Subject(), []string{strconv.Itoa(int(b) % 30)}))
			}
			s := m.View()
			if len(s.Lines) > max(1, int(height)) {
				t.Fatalf("%d lines of %d", len(s.Lines), height)
			}
			if s.Cursor >= len(s.Lines) {
				t.Fatalf("the cursor is in line %d of %d", s.Cursor, len(s.Lines))
			}
			m.InView()
		}
	})
}
