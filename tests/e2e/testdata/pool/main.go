// Program pool uses pools in the scenarios that its argument lists, as main.py does. Its own
// output is lines of JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/starter/pool"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var (
	state      atomic.Int64
	everywhere = make2(pool.Options{Tasks: workers(2)}) // MPR-31: at program load
)

func init() {
	pool.Register("pid", func(context.Context) (int, error) { return os.Getpid(), nil })
	pool.Register("noop", func(context.Context) error { return nil })
	pool.Register("fail", func(context.Context) error { return errors.New("This is an error.") }) //nolint:staticcheck // the seed's text
	pool.Register("kind", kind)
	pool.Register("initialize", func(context.Context) error { state.Store(1); return nil })
	pool.Register("broken", func(context.Context) error { return errors.New("no initialization") })
	pool.Register("swap", func(_ context.Context, n int64) (int64, error) { return state.Swap(n), nil })
	pool.Register("rank_or_none", rankOrNone)
	pool.Register("fail_backwards", failBackwards)
	pool.Register("leave", leave)
	pool.Register("nested", nested)
}

func kind(context.Context) (string, error) {
	var config struct{ Task struct{ Type string } }
	err := json.Unmarshal([]byte(os.Getenv("TF_CONFIG")), &config)
	return config.Task.Type, err
}

func rank() int {
	n, _ := strconv.Atoi(os.Getenv("RANK"))
	return n
}

func rankOrNone(context.Context) (*int, error) {
	r := rank()
	if r == 1 {
		return nil, nil
	}
	return &r, nil
}

// failBackwards fails in the reverse order: worker-1 first, then worker-0. worker-2 ends last.
func failBackwards(_ context.Context, dir string) error {
	await(map[int]string{0: dir + "/1", 2: dir + "/0"}[rank()])
	if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, rank()), nil, 0o644); err != nil || rank() == 2 {
		return err
	}
	return fmt.Errorf("worker-%d fails", rank())
}

func await(file string) {
	for file != "" {
		if _, err := os.Stat(file); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func awaitGo() {
	await("go")
	_ = os.Remove("go")
}

func leave(_ context.Context, how string) error {
	if rank() != 0 {
		return nil
	}
	if how == "kill" {
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	os.Exit(0)
	return nil
}

func nested(ctx context.Context) ([]any, error) {
	pids, err := everywhere.Run(ctx, "pid")
	return []any{os.Getpid(), pids}, err
}

func workers(n int) []spec.TaskGroup { return []spec.TaskGroup{{Type: "worker", Count: &n}} }

func make2(o pool.Options) *pool.Pool {
	p, err := pool.New(o)
	if err != nil {
		panic(err)
	}
	return p
}

func say(what map[string]any) {
	b, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

type tried struct {
	Values []json.RawMessage `json:"values,omitempty"`
	Error  string            `json:"error,omitempty"`
	Type   string            `json:"type,omitempty"`
	Cause  string            `json:"cause,omitempty"`
}

func try(p *pool.Pool, function string, args ...any) tried {
	values, err := p.Run(context.Background(), function, args...)
	switch {
	case errors.Is(err, pool.ErrProcessDied):
		return tried{Error: pool.ErrProcessDied.Error(), Type: "RuntimeError", Cause: err.Error()}
	case err != nil:
		return tried{Error: err.Error()}
	}
	return tried{Values: values}
}

func run(p *pool.Pool, function string, args ...any) []json.RawMessage {
	values, err := p.Run(context.Background(), function, args...)
	if err != nil {
		panic(err)
	}
	return values
}

func main() {
	if os.Args[1] != "no main" {
		pool.Main()
	}
	p := make2(pool.Options{Tasks: workers(2)})
	for scenario := range strings.SplitSeq(os.Args[1], ",") {
		play(scenario, p)
	}
	p.Shutdown()
}

func play(scenario string, p *pool.Pool) {
	switch scenario {
	case "same":
		var pids [][]json.RawMessage
		for range 4 {
			pids = append(pids, run(p, "pid"))
		}
		say(map[string]any{"pids": pids})
	case "errors":
		say(map[string]any{"before": run(p, "pid"), "failed": try(p, "fail"), "after": run(p, "pid")})
	case "kinds":
		one := 1
		c := make2(pool.Options{Tasks: []spec.TaskGroup{
			{Type: "chief", Count: &one}, {Type: "worker", Addresses: []string{"localhost:17101", "localhost:17102"}},
		}})
		say(map[string]any{"values": run(c, "kind")})
	case "order":
		dir, _ := os.Getwd()
		p = make2(pool.Options{Tasks: workers(3)})
		defer p.Shutdown()
		failed := try(p, "fail_backwards", dir)
		_, err := os.Stat("2")
		say(map[string]any{"failed": failed, "finished": err == nil, "values": run(p, "rank_or_none")})
	case "initializer":
		p = make2(pool.Options{Tasks: workers(2), Initializer: "initialize"})
		defer p.Shutdown()
		say(map[string]any{"first": run(p, "swap", 2), "second": run(p, "swap", 3)})
	case "broken":
		p = make2(pool.Options{Tasks: workers(2), Initializer: "broken"})
		defer p.Shutdown()
		say(map[string]any{"failed": try(p, "pid")})
	case "global":
		say(map[string]any{"values": run(everywhere, "noop")})
	case "nested":
		say(map[string]any{"values": run(everywhere, "nested")})
	case "dies":
		for _, how := range []string{"kill", "exit"} {
			before := run(p, "pid")
			failed := try(p, "leave", how)
			say(map[string]any{"how": how, "before": before, "failed": failed, "after": run(p, "pid")})
		}
	case "idle":
		say(map[string]any{"pids": run(p, "pid")})
		awaitGo()
		say(map[string]any{"failed": try(p, "pid"), "after": run(p, "pid")})
	case "shutdown":
		say(map[string]any{"pids": run(p, "pid")})
		p.Shutdown()
		p.Shutdown()
		say(map[string]any{"down": true})
		awaitGo()
		say(map[string]any{"pids": run(p, "pid")})
	case "shutdown late":
		say(map[string]any{"pids": run(p, "pid")})
		awaitGo()
		p.Shutdown()
		say(map[string]any{"down": true})
	case "main fails":
		say(map[string]any{"pids": append(run(p, "pid"), run(everywhere, "pid")...)})
		panic("an error of the main program")
	case "hangs":
		say(map[string]any{"pids": run(p, "pid")})
		time.Sleep(1000 * time.Second)
	case "interrupted":
		pids := run(p, "pid")
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		var err error
		for err == nil {
			_, err = p.Run(ctx, "noop")
		}
		say(map[string]any{"interrupted": errors.Is(err, context.DeadlineExceeded), "before": pids, "after": run(p, "pid")})
	case "refused":
		_, initializer := pool.New(pool.Options{Tasks: workers(2), Initializer: "pid"})
		_, empty := pool.New(pool.Options{})
		say(map[string]any{
			"plain": try(p, "unregistered"), "initializer": tried{Error: initializer.Error()}, "empty": tried{Error: empty.Error()},
			"large": try(p, "swap", string(make([]byte, 300_000))), "odd": try(p, "swap", make(chan int)), "after": run(p, "swap", 5),
			"elsewhere": try(p, "unregistered"), "again": run(p, "swap", 6),
		})
	case "no main":
		say(map[string]any{"failed": try(p, "pid")})
	default:
		panic(scenario)
	}
}
