package steptime

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// "tasks" takes lines "TYPE-RANK HOST SECONDS [STEPS] [rounds]" and returns what is slow.
// "series" takes a word per report, "STEP@WORKED", "round@WORKED", or "N*(REPORTS)", which
// repeats reports N times and shows their sum, such as "20*(+1@+50ms)".
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "series" {
				return series(t, d.Input)
			}
			var tasks []Task
			for line := range strings.Lines(d.Input) {
				tasks = append(tasks, taskOf(t, strings.Fields(line)))
			}
			var b strings.Builder
			for _, s := range Find(tasks) {
				fmt.Fprintln(&b, s)
			}
			if TooFew(tasks) {
				fmt.Fprintln(&b, "too few")
			}
			return b.String()
		})
	})
}

func taskOf(t *testing.T, words []string) Task {
	kind, rank, ok := strings.Cut(words[0], "-")
	require.True(t, ok, words)
	task := Task{Name: words[0], Type: kind, Host: words[1], Time: &spec.StepTime{Steps: 50}}
	task.Rank = must.Get(strconv.Atoi(rank))(t)
	if words[2] == "-" {
		task.Time = nil
		return task
	}
	task.Time.Seconds = must.Get(strconv.ParseFloat(words[2], 64))(t)
	for _, w := range words[3:] {
		if w == "rounds" {
			task.Time.Barriers = true
			continue
		}
		task.Time.Steps = must.Get(strconv.Atoi(w))(t)
	}
	return task
}

func series(t *testing.T, text string) string {
	var s Series
	var b strings.Builder
	step, worked := 0.0, time.Duration(0)
	for line := range strings.Lines(text) {
		times, reports := 1, strings.TrimSpace(line)
		if n, inner, ok := strings.Cut(reports, "*("); ok {
			times = must.Get(strconv.Atoi(n))(t)
			reports = strings.TrimSuffix(inner, ")")
		}
		for range times {
			for _, word := range strings.Fields(reports) {
				what, at, _ := strings.Cut(word, "@")
				d := must.Get(time.ParseDuration(strings.TrimPrefix(at, "+")))(t)
				if worked = d + worked; !strings.HasPrefix(at, "+") {
					worked = d
				}
				if what == "round" {
					s.Round(worked)
					continue
				}
				n := must.Get(strconv.ParseFloat(strings.TrimPrefix(what, "+"), 64))(t)
				if step = n + step; !strings.HasPrefix(what, "+") {
					step = n
				}
				s.Progress(step, worked)
			}
		}
		if now := s.Time(); now == nil {
			fmt.Fprintln(&b, "nothing")
		} else {
			fmt.Fprintf(&b, "%+v\n", *now)
		}
	}
	return b.String()
}

// Ranks with the same rhythm of short and long steps are never slow.
func TestARhythmIsNotSlow(t *testing.T) {
	for period := 1; period <= 40; period++ {
		var tasks []Task
		for ahead := range period {
			var s Series
			worked := time.Duration(0)
			for i := range 200 + ahead {
				worked += 10 * time.Millisecond
				if i%period == 0 {
					worked += time.Second
				}
				s.Progress(float64(i), worked)
			}
			tasks = append(tasks, Task{Name: strconv.Itoa(ahead), Rank: ahead, Time: s.Time()})
		}
		assert.Empty(t, Find(tasks), "period %d", period)
	}
}

func FuzzFind(f *testing.F) {
	f.Add(uint64(1), 8)
	f.Add(uint64(2), 1)
	f.Add(uint64(3), 300)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		if n < 0 || n > 1000 {
			t.Skip()
		}
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable
		tasks := make([]Task, n)
		for i := range tasks {
			tasks[i] = Task{Name: "t-" + strconv.Itoa(i), Type: strconv.Itoa(r.IntN(2)), Rank: i, Host: strconv.Itoa(r.IntN(5))}
			if r.IntN(4) > 0 {
				tasks[i].Time = &spec.StepTime{Steps: r.IntN(100), Seconds: float64(r.IntN(20)) / 8, Barriers: r.IntN(8) == 0}
			}
		}
		slow := Find(tasks)
		covered := map[string]bool{}
		for _, s := range slow {
			assert.GreaterOrEqual(t, s.Ratio, lateRatio)
			assert.GreaterOrEqual(t, s.Seconds, lateRatio*s.Others)
			assert.Positive(t, s.Others)
			assert.Equal(t, s.Task == "", s.Tasks >= 2, "%+v", s)
			key := s.Task
			if key == "" {
				key = fmt.Sprint("host ", s.Host, s.Rank)
			}
			assert.False(t, covered[key], "%s twice", key)
			covered[key] = true
			for _, task := range tasks {
				if task.Name == s.Task {
					assert.Equal(t, s.Seconds, task.Time.Seconds)
				}
			}
		}
		r.Shuffle(n, func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		assert.ElementsMatch(t, slow, Find(tasks), "the order does not matter")
	})
}

func FuzzSeries(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Series
		worked := time.Duration(0)
		longest := 0.0
		for i, b := range data {
			worked += time.Duration(b>>3) * time.Millisecond
			var steps float64
			var took time.Duration
			if b&7 == 7 {
				steps, took = s.Round(worked)
			} else {
				steps, took = s.Progress(float64(i/4)+float64(b&3), worked)
			}
			if steps > 0 {
				longest = max(longest, took.Seconds()/steps)
			}
			if now := s.Time(); now != nil {
				assert.GreaterOrEqual(t, now.Seconds, 0.0)
				assert.LessOrEqual(t, now.Seconds, longest+1e-6)
				assert.Positive(t, now.Steps)
			}
		}
	})
}
