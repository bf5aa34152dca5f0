package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/clusterrun/clusterrun/activities/task/coordinator"
)

// A reader feeds a trainer until the trainer fails; then both end, and the reason
// is known.
func Example() {
	coord := coordinator.New()
	batches := make(chan int)
	coord.Go("reader", func(ctx context.Context) error {
		for batch := 0; ; batch++ {
			select {
			case batches <- batch:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	coord.Go("trainer", func(context.Context) error {
		for batch := range batches {
			if batch == 3 {
				return errors.New("the loss is not a number")
			}
		}
		return nil
	})
	fmt.Println(coord.Join())
	// Output: the loss is not a number
}

// The end of the input stops everything, and is no error.
func ExampleCleanStop() {
	coord := coordinator.New() // with coordinator.CleanStop(io.EOF), unless told otherwise
	coord.Go("reader", func(context.Context) error { return fmt.Errorf("no more shards: %w", io.EOF) })
	coord.Go("trainer", func(ctx context.Context) error {
		<-ctx.Done()
		fmt.Println("saving")
		return nil
	})
	fmt.Println(coord.Join())
	// Output:
	// saving
	// <nil>
}

// Something is done at fixed times as long as the others run.
func ExampleCoordinator_Loop() {
	coord := coordinator.New()
	saves := 0
	coord.Loop(coordinator.Looper{
		Name:     "saver",
		Interval: time.Millisecond,
		Run: func(context.Context) error {
			if saves++; saves == 3 {
				return coord.RequestStop(nil)
			}
			return nil
		},
		Stop: func() error {
			fmt.Println("saved", saves, "times")
			return nil
		},
	})
	fmt.Println(coord.Join())
	// Output:
	// saved 3 times
	// <nil>
}

// Threads that do not look whether they should stop are named.
func ExampleCoordinator_Join() {
	coord := coordinator.New()
	never := make(chan struct{})
	coord.Register(coordinator.NewThread("reader-1", never), coordinator.NewThread("reader-2", never))
	_ = coord.RequestStop(nil)
	err := coord.Join(coordinator.Grace(10 * time.Millisecond))
	fmt.Println(err)
	// Output: Coordinator stopped with threads still running: reader-1 reader-2
}

// A deadline, a signal or anything else that has a context stops a coordinator so.
func ExampleCoordinator_RequestStop() {
	ctx, cancel := context.WithCancelCause(context.Background())
	coord := coordinator.New()
	context.AfterFunc(ctx, func() { _ = coord.RequestStop(context.Cause(ctx)) })
	coord.Go("worker", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cancel(errors.New("the machine is needed elsewhere"))
	fmt.Println(coord.Join())
	// Output: the machine is needed elsewhere
}
