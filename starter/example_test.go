package starter_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Start a chief and three workers, wait for their end, and look at the chief's
// return value.
func Example() {
	ctx := context.Background()
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions()) // the server of `eval "$(clusterrun server env)"`
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	three := 3
	run, err := starter.Start(ctx, c, &spec.RunSpec{
		Name:    "iris",
		Command: []string{"python3", "train.py"},
		Dir:     "/srv/job",
		Tasks:   []spec.TaskGroup{{Type: "chief"}, {Type: "worker", Count: &three}},
	}, starter.Options{})
	if err != nil {
		log.Fatal(err) // the error lists all problems of an invalid spec
	}

	result, err := run.Wait(ctx)
	var failed *starter.Error
	switch {
	case errors.As(err, &failed):
		fmt.Println("the root cause was", failed.Result.FirstFailure.Task)
	case err != nil:
		log.Fatal(err) // terminated, or no such run
	default:
		fmt.Printf("%s returned %s\n", result.Tasks[0].Name, result.Tasks[0].Value)
	}
}

// Look at a run that another program has started, and end one of its tasks.
func ExampleGet() {
	ctx := context.Background()
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	run := starter.Get(c, "iris-x2k4", "")
	status, err := run.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range status.Tasks {
		fmt.Println(t.Name, t.State, t.PID, t.Restarts)
	}
	if _, err := starter.Ask(ctx, run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-1"}}); err != nil {
		log.Fatal(err)
	}
}
