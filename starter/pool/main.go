package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
)

// marker is the first argument of a pool's process. Its knowledge and the program's arguments
// follow.
const marker = "clusterrun-pool-process"

// knowledge is a pool process's configuration, in JSON.
type knowledge struct {
	Initializer string `json:"initializer,omitempty"`
	// Environ holds variables that tasks do not inherit from our environment, but that their own
	// pools need.
	Environ map[string]string `json:"environ,omitempty"`
}

// environ lists the variables, in addition to CLUSTERRUN_BIN, that tasks do not inherit.
var environ = []string{"CLUSTERRUN_STATE_DIR", "CLUSTERRUN_DEVSERVER"}

var (
	functions    = task.NewFunctions()
	registered   = map[string]any{}
	mainIsCalled atomic.Bool
)

// Register registers a function for pools. The function may be any that [task.Functions]
// accepts: func(ctx, args...) (T, error), or one that returns only an error. Call Register in an
// init function. It panics if the function or its name is invalid.
func Register(name string, fn any) {
	if err := functions.Register(name, fn); err != nil {
		panic("pool: " + err.Error())
	}
	registered[name] = fn
}

// Main must be called first in the main function, once all functions are registered. In a pool's
// process it does not return.
func Main() {
	mainIsCalled.Store(true)
	if len(os.Args) < 3 || os.Args[1] != marker {
		return
	}
	var k knowledge
	err := json.Unmarshal([]byte(os.Args[2]), &k)
	os.Args = append(os.Args[:1:1], os.Args[3:]...)
	if err == nil {
		err = serve(k)
	}
	endAll() // stop our own pools before the host worker kills their programs
	if err != nil {
		fmt.Fprintln(os.Stderr, "pool:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var errPoolEnds = errors.New("the pool is shut down")

// serve calls functions until the pool is shut down.
func serve(k knowledge) error {
	for name, value := range k.Environ {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(context.Background())
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	go func() {
		<-terminated
		end(errPoolEnds)
	}()
	t, err := task.Current()
	if err != nil {
		return err
	}
	if k.Initializer != "" {
		initialize := initializerOf(k.Initializer)
		if initialize == nil {
			return fmt.Errorf("the initializer %q was not registered before Main", k.Initializer)
		}
		if err := initialize(ctx); err != nil {
			return fmt.Errorf("the initializer %s: %w", k.Initializer, err)
		}
	}
	if len(registered) == 0 {
		return errors.New("no function was registered before Main")
	}
	if err := t.Serve(ctx, functions); !errors.Is(err, errPoolEnds) {
		return err
	}
	return nil
}

// initializerOf returns the named registered function if its type is that of an initializer.
func initializerOf(name string) func(context.Context) error {
	fn, _ := registered[name].(func(context.Context) error)
	return fn
}
