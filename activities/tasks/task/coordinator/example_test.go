package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/task/coordinator"
)

// A reader feeds a trainer until the trainer fails. Then both end, and Join returns the
// reason.
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

// The end of the input stops everything and is not an error.
func ExampleCleanStop() {
	coord := coordinator.New() // includes coordinator.CleanStop(io.EOF) by default
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

// A function is called at fixed times for as long as the other threads run.
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

// Join names threads that do not check whether they should stop.
func ExampleCoordinator_Join() {
	coord := coordinator.New()
	never := make(chan struct{})
	coord.Register(coordinator.NewThread("reader-1", never), coordinator.NewThread("reader-2", never))
	_ = coord.RequestStop(nil)
	err := coord.Join(coordinator.Grace(10 * time.Millisecond))
	fmt.Println(err)
	// Output: Coordinator stopped with threads still running: reader-1 reader-2
}

// A deadline, a signal or anything else that has a context can stop a coordinator like this.
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
