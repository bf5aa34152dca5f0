package measure

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
)

// Figure is a measured figure, with its floor of the same run.
type Figure struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Best    float64 `json:"best"`
	Median  float64 `json:"median"`
	Floor   float64 `json:"floor"` // its median
	FloorIs string  `json:"floor_is"`
	// Ratio is the ratio of the medians. In the best round the first of two marks may have been
	// read late. Ratio is 0 if the floor is 0.
	Ratio float64 `json:"ratio,omitempty"`
}

// Measurement takes the figures of `make bench`.
type Measurement struct {
	Place *Place
	Ours  *Launcher
	Chief Start
	// Program is the command line that runs [Program] in this executable.
	Program []string
	// Client is a client of the server that Ours uses.
	Client client.Client
	// Tell is called with the name of the next figure, and the progress.
	Tell func(text string)
}

// figure measures clusterrun and its floor in turns.
type figure struct {
	name, unit, floorIs string
	ours, floor         func(context.Context) (float64, error)
}

const (
	someTasks = 8
	manyTasks = 64

	// A figure is measured for some seconds, if the rounds suffice.
	figureTime  = 5 * time.Second
	leastRounds = 3
	mostRounds  = 25
)

// Figures measures for about a minute.
func (m *Measurement) Figures(ctx context.Context) ([]Figure, error) {
	var figures []Figure
	list := m.list()
	for i, f := range list {
		var ours, floor []float64
		m.Tell(fmt.Sprintf("%d of %d: %s", i+1, len(list)+1, f.name))
		for begun, round := time.Now(), 0; round < leastRounds || round < mostRounds && time.Since(begun) < figureTime; round++ {
			for _, side := range []struct {
				measure func(context.Context) (float64, error)
				to      *[]float64
			}{{f.floor, &floor}, {f.ours, &ours}} {
				v, err := side.measure(ctx)
				if err != nil {
					return nil, fmt.Errorf("measure %s: %w", f.name, err)
				}
				*side.to = append(*side.to, v)
			}
		}
		figures = append(figures, f.of(ours, floor))
	}
	m.Tell(fmt.Sprintf("%d of %d: closures", len(list)+1, len(list)+1))
	lone, err := m.closures(ctx)
	if err != nil {
		return nil, fmt.Errorf("measure closures: %w", err)
	}
	return append(figures, lone), nil
}

func (f *figure) of(ours, floor []float64) Figure {
	middle := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
	result := Figure{Name: f.name, Unit: f.unit, FloorIs: f.floorIs, Best: slices.Min(ours), Median: middle(ours), Floor: max(0, middle(floor))}
	if result.Floor > 0 {
		result.Ratio = result.Median / result.Floor
	}
	return result
}

// list returns the figures that are measured alike.
func (m *Measurement) list() []figure {
	p, shell := m.Place, Shell()
	whole := func(start Start, n int) func(context.Context) (float64, error) {
		return timed(func(ctx context.Context) (time.Duration, error) {
			took, _, err := p.Whole(ctx, start, n)
			return took, err
		})
	}
	launch := func(l *Launcher, n int) func(context.Context) (float64, error) {
		return timed(func(ctx context.Context) (time.Duration, error) { return p.Launch(ctx, l, n) })
	}
	restart := func(l *Launcher) func(context.Context) (float64, error) {
		return timed(func(ctx context.Context) (time.Duration, error) { return p.Restart(ctx, l) })
	}
	failure := func(start Start) func(context.Context) (float64, error) {
		return timed(func(ctx context.Context) (time.Duration, error) { return p.EndAfterFailure(ctx, start, someTasks) })
	}
	chief := func(start Start) func(context.Context) (float64, error) {
		return timed(func(ctx context.Context) (time.Duration, error) { return p.EndAfterChief(ctx, start, someTasks) })
	}
	memory := func(l *Launcher) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			many, err := p.Memory(ctx, l, manyTasks)
			if err != nil {
				return 0, err
			}
			one, err := p.Memory(ctx, l, 1)
			return float64(many-one) / (manyTasks - 1) / 1024, err
		}
	}
	const start = "a shell starts the same processes"
	var list []figure
	for _, n := range []int{1, someTasks} {
		list = append(list, figure{fmt.Sprintf("run -n %d -- true, the whole command", n), "ms", start, whole(m.Ours.Launch, n), whole(shell.Launch, n)})
	}
	for _, n := range []int{1, someTasks, manyTasks} {
		list = append(list, figure{fmt.Sprintf("launch, until %d execute", n), "ms", start, launch(m.Ours, n), launch(shell, n)})
	}
	return append(list,
		figure{"restart of a failed process", "ms", "a shell in a loop", restart(m.Ours), restart(shell)},
		figure{fmt.Sprintf("one of %d fails, until all have ended", someTasks), "ms", "a shell kills its group", failure(m.Ours.End), failure(shell.End)},
		figure{fmt.Sprintf("the chief of %d ends, until all have", someTasks), "ms", "a shell kills its group", chief(m.Chief), chief(shell.End)},
		figure{fmt.Sprintf("local barrier of %d", someTasks), "ms", "a byte each to a socket and back",
			timed(func(ctx context.Context) (time.Duration, error) {
				return p.LocalBarrier(ctx, m.Ours, someTasks, 2000, m.Program)
			}),
			timed(func(ctx context.Context) (time.Duration, error) { return p.Exchange(ctx, someTasks, 2000, m.Program) })},
		figure{"memory for each process", "KiB", "a shell's own", memory(m.Ours), memory(shell)},
	)
}

func timed(measure func(context.Context) (time.Duration, error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		took, err := measure(ctx)
		return Milliseconds(took), err
	}
}

// closures measures single closures, from a coordinator outside the run.
func (m *Measurement) closures(ctx context.Context) (Figure, error) {
	f := figure{name: "closure, from schedule to value", unit: "ms", floorIs: "a byte to a socket and back"}
	exchanged, err := m.Place.Exchange(ctx, 1, 2000, m.Program)
	if err != nil {
		return Figure{}, err
	}
	id := starter.NewID("bench")
	c, err := m.Place.launch(ctx, func(dir string, n int, argv []string) ([]string, error) {
		line, err := m.Ours.Launch(dir, n, argv)
		at := slices.Index(line, "--")
		return slices.Insert(line, at, "--id", id), err
	}, 4, append(m.Program, "serve"))
	if err != nil {
		return Figure{}, err
	}
	defer c.abort()
	if _, _, err := c.await(ctx, 4); err != nil {
		return Figure{}, err
	}
	coordinator, err := clustercoordinator.New(ctx, starter.Get(m.Client, id, ""))
	if err != nil {
		return Figure{}, err
	}
	defer coordinator.Close()
	if _, err := Lone(ctx, coordinator, 20); err != nil {
		return Figure{}, err
	}
	took, err := Lone(ctx, coordinator, 100)
	if err != nil {
		return Figure{}, err
	}
	if err := c.finish(false); err != nil {
		return Figure{}, err
	}
	var ours []float64
	for _, d := range took {
		ours = append(ours, Milliseconds(d))
	}
	return f.of(ours, []float64{Milliseconds(exchanged)}), nil
}
