package page

import (
	"fmt"
	"math"
	"time"

	"github.com/clusterrun/clusterrun/workflows/stacktree"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// runOf returns an open run of tasks on hosts with eight tasks each.
func runOf(n int) *RunPage {
	p := &RunPage{
		Frame: Frame{At: noon, Version: "1.2.3", Refresh: 2 * time.Second, Nav: []Link{{Text: "Runs", URL: "/", Current: true}, {Text: "Hosts", URL: "/hosts"}}, TemporalURL: "/temporal/"},
		ID:    "iris-x2k4", ExecutionID: "0191-aa", State: "running", Tone: Active, Open: true, Started: noon.Add(-42 * time.Minute),
		Owner: "ada", Command: "python -u train.py --config configs/iris-large.yaml --batch-size 64 --precision bf16", Dir: "/home/ada/iris", Hosts: (n + 7) / 8,
		Spec: "version: 1\nname: iris\nhosts: 6\ntasks:\n- type: worker\n  count: 48\n  command: [python, -u, train.py]\n",
		Commands: []Command{
			{"Follow the output", "clusterrun logs -f iris-x2k4"}, {"Show the stacks", "clusterrun stacks iris-x2k4"},
			{"Run it again", "clusterrun rerun iris-x2k4"}, {"Stop it", "clusterrun stop iris-x2k4"},
		},
		Starts: []Start{{Tasks: "worker-0, worker-1 and 46 more", Version: "1.2.3", Dir: "/home/ada/iris", Set: []Variable{{Name: "OMP_NUM_THREADS", Value: "8"}, {Name: "HF_TOKEN", Hidden: true}}, Inherited: []string{"HOME", "PATH", "USER"}}},
	}
	p.Progress = &Progress{Least: .47, Most: .49, Left: 45 * time.Minute, Message: "epoch 4"}
	for i := range n {
		p.Tasks.All = append(p.Tasks.All, Task{
			Rank: i, Name: fmt.Sprintf("worker-%d", i), State: "running", Tone: Active, Host: fmt.Sprintf("gpu-%d", i/8), PID: 41200 + i,
			Step: 4700 + float64(i%3), Steps: 10000, Seconds: .31, LastLine: fmt.Sprintf("step 4700  loss 2.%d  lr 3e-4", 300+i%90), LastOutput: noon.Add(-time.Duration(i%5) * time.Second),
			CPUs: 6.5 + float64(i%4)/4, Memory: 41 << 30, GPUs: .97, GPUMemory: 71 << 30,
		})
	}
	lines := []OutputLine{}
	for s := range 30 {
		for r := range 2 {
			text := fmt.Sprintf("step %d  loss %.4f", 4670+s, 2.31-float64(s)/900)
			line := OutputLine{At: noon.Add(time.Duration(s-30) * 2 * time.Second), Task: "worker-0", Ranks: "0", Count: 1, Text: text, Tone: Active}
			switch {
			case r == 0 && s%10 != 3:
				continue
			case r == 0:
				line.Text = fmt.Sprintf("\x1b[32mcheckpoint\x1b[0m written to s3://iris/ckpt-%d in 3.1 s", 4670+s)
			case n > 1:
				line.Ranks, line.Count = fmt.Sprintf("0-%d", n-1), n
			}
			lines = append(lines, line)
		}
	}
	p.Output = Output{Lines: lines}
	p.Timeline = Timeline{From: p.Started, To: noon, Spans: []Span{
		{"run", "queued", p.Started, p.Started.Add(2 * time.Minute), Waits}, {"run", "placing", p.Started.Add(2 * time.Minute), p.Started.Add(3 * time.Minute), Waits},
		{"run", "running", p.Started.Add(3 * time.Minute), noon, Active},
		{"attempts of the group", "attempt 0", p.Started.Add(3 * time.Minute), p.Started.Add(17 * time.Minute), Muted}, {"attempts of the group", "attempt 1", p.Started.Add(18 * time.Minute), noon, Active},
	}, Events: []Event{{p.Started, "started by ada", Active}, {p.Started.Add(17 * time.Minute), "worker-9 on gpu-1 was lost with its host; the group restarted (attempt_1)", Warning}}}
	p.Restarts = 1
	p.Series = seriesOf(p, 120)
	p.Charted = []int{3}
	return p
}

// seriesOf returns made-up series, with a task that is slow.
func seriesOf(p *RunPage, points int) []Series {
	all := []Series{{Name: "CPU", LowIsBad: true}, {Name: "Memory", Unit: Bytes}, {Name: "GPU", LowIsBad: true}, {Name: "Step time", Unit: Seconds}}
	for k := range all {
		s := &all[k]
		for i := range points {
			s.Times = append(s.Times, p.Started.Add(time.Duration(i)*42*time.Minute/time.Duration(points)))
		}
		for r := range min(len(p.Tasks.All), 48) {
			t := TaskSeries{Rank: r, Name: p.Tasks.All[r].Name}
			for i := range points {
				wave := 1 + .06*math.Sin(float64(i)/7+float64(r)) + .03*math.Sin(float64(i*r))
				if r == 17 {
					wave *= 1.6
				}
				v := []float64{7 * wave, float64(41<<30) * wave / 1.2, min(1, .93*wave), .31 * wave}[k]
				if i > points*40/100 && i < points*44/100 {
					v = math.NaN()
				}
				t.Values = append(t.Values, v)
			}
			s.Tasks = append(s.Tasks, t)
		}
	}
	return all
}

func goodRun() *RunPage {
	p := runOf(48)
	p.State, p.Tone, p.Open, p.Ended, p.Progress, p.Refresh = "succeeded", Good, false, noon, nil, 0
	for i := range p.Tasks.All {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How = "ended", Good, ""
	}
	return p
}

const traceback = `Traceback (most recent call last):
  File "/home/ada/iris/train.py", line 212, in <module>
    main()
  File "/home/ada/iris/train.py", line 188, in main
    batch = next(batches)
  File "/home/ada/iris/data.py", line 88, in __next__
    raise ValueError(f"shard {self.shard} is corrupt")
ValueError: shard 17 is corrupt`

func failedRun() *RunPage {
	p := runOf(48)
	p.State, p.Tone, p.Open, p.Ended, p.ExitCode, p.Progress, p.Refresh = "failed", Bad, false, noon, 1, nil, 0
	p.Cause = &Cause{
		Sentence: "Subprocess worker-17 exited with exit code 1: ValueError: shard 17 is corrupt (data.py:88)", Task: "worker-17", Rank: 17, Host: "gpu-2", PID: 41217,
		At: noon.Add(-3 * time.Second), Words: traceback, FirstError: "ValueError: shard 17 is corrupt (data.py:88)",
		Details: []string{"1 other failed after it: worker-3 on gpu-0 (exit code 1, 310ms later)", "46 were stopped because of it: worker-0, worker-1, worker-2, worker-4 and 42 more"},
	}
	for i := range p.Tasks.All {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How = "stopped", Muted, "because of worker-17"
	}
	p.Tasks.All[17].State, p.Tasks.All[17].Tone, p.Tasks.All[17].How = "failed", Culprit, "exit code 1"
	p.Tasks.All[3].State, p.Tasks.All[3].Tone, p.Tasks.All[3].How = "failed", Bad, "exit code 1"
	for i, line := range []string{"Traceback (most recent call last):", `  File "/home/ada/iris/data.py", line 88, in __next__`, "\x1b[1;31mValueError\x1b[0m: shard 17 is corrupt"} {
		p.Output.Lines = append(p.Output.Lines, OutputLine{At: noon.Add(time.Duration(i)*time.Millisecond - 3*time.Second), Task: "worker-17", Rank: 17, Ranks: "17", Count: 1, Stderr: true, Text: line, Tone: Culprit})
	}
	p.Timeline.Events = append(p.Timeline.Events, Event{noon.Add(-3 * time.Second), "worker-17 on gpu-2 exited with exit code 1", Culprit}, Event{noon, "failed", Bad})
	return p
}

func hangingRun() *RunPage {
	p := runOf(48)
	var others []int
	for i := range p.Tasks.All {
		if i != 17 {
			others = append(others, i)
		}
		p.Tasks.All[i].LastOutput, p.Tasks.All[i].CPUs = noon.Add(-11*time.Minute), 1
	}
	p.Tasks.All[17].State, p.Tasks.All[17].Tone, p.Tasks.All[17].How = "silent", Warning, "for 11m 00s"
	p.Stacks = &stacktree.Findings{Total: 48, Sentence: "rank 17 on gpu-2 holds the others up: it sleeps in load_batch, 47 wait in all_reduce", Outliers: stacktree.RanksOf(17), Classes: []stacktree.Class{
		{Ranks: stacktree.RanksOf(others...), Count: 47, Wait: stacktree.Wait{Reason: stacktree.Collective, Name: "all_reduce"}, Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "step", File: "train.py", Line: 144}, {Kind: stacktree.Python, Function: "main", File: "train.py", Line: 190}}},
		{Ranks: stacktree.RanksOf(17), Count: 1, Outlier: true, Wait: stacktree.Wait{Reason: "sleep", Name: "sleep"}, Place: []stacktree.Frame{{Kind: stacktree.Python, Function: "load_batch", File: "data.py", Line: 61}}},
	}}
	b := Barrier{Name: "epoch", Round: 4, Opened: noon.Add(-11 * time.Minute), Missing: []BarrierTask{{Task: "worker-17", Host: "gpu-2", Since: noon.Add(-11 * time.Minute), State: "running"}}, MoreWaiting: 39}
	for i := range 8 {
		b.Waiting = append(b.Waiting, BarrierTask{Task: p.Tasks.All[i].Name, Host: p.Tasks.All[i].Host, Since: noon.Add(-10 * time.Minute)})
	}
	p.Barriers = []Barrier{b}
	p.Notices = []Notice{{Tone: Warning, Text: "worker-17 has been silent for 11m 00s; the run allows 10m 00s."}}
	p.Actions = []Action{{Name: "stacks", Label: "Stacks", URL: "/runs/iris-x2k4/stacks", Question: "Capture the stacks of all tasks?", Effect: "The processes pause for a moment."}, {Name: "stop", Label: "Stop", URL: "/runs/iris-x2k4/stop", Danger: true, Question: "Stop the run?", Effect: "48 tasks get SIGTERM, and 30 s to end."}}
	return p
}

func largeRun() *RunPage {
	p := runOf(2000)
	for i := range p.Tasks.All {
		switch {
		case i == 1234:
			p.Tasks.All[i].State, p.Tasks.All[i].Tone, p.Tasks.All[i].How, p.Tasks.All[i].Restarts = "restarting", Warning, "exit code 1", 3
		case i == 77:
			p.Tasks.All[i].Slow, p.Tasks.All[i].Seconds = 1.8, .56
		case i >= 1990:
			p.Tasks.All[i].State, p.Tasks.All[i].Tone = "pending", Waits
		}
	}
	return p
}

// awayRun is a run with a host that does not answer.
func awayRun() *RunPage {
	p := runOf(48)
	for i := 16; i < 24; i++ {
		p.Tasks.All[i].State, p.Tasks.All[i].Tone = "missing", Warning
	}
	p.Notices = []Notice{{Tone: Warning, Text: "gpu-2 has sent nothing for 1m 20s; the run gives it up in 3m 40s"}}
	p.Output.Missing = []string{"worker-16 to worker-23 on gpu-2: connection refused"}
	return p
}
