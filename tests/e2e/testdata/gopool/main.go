// Program gopool calls functions in a pool of two processes, in Go, and prints what they return.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/clusterrun/clusterrun/starter/pool"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func init() {
	pool.Register("pid", func(context.Context) (int, error) { return os.Getpid(), nil })
	pool.Register("ready", func(context.Context) error { return os.Setenv("READY", "yes") })
	pool.Register("isReady", func(context.Context) (string, error) { return os.Getenv("READY"), nil })
	pool.Register("fail", func(context.Context) error { return errors.New("this is an error") })
}

func main() {
	pool.Main()
	two := 2
	p, err := pool.New(pool.Options{Tasks: []spec.TaskGroup{{Type: "worker", Count: &two}}, Initializer: "ready"})
	if err != nil {
		panic(err)
	}
	defer p.Shutdown()
	for _, function := range []string{"pid", "pid", "isReady", "fail"} {
		values, err := p.Run(context.Background(), function)
		fmt.Printf("%s %s %v\n", function, values, err)
	}
}
