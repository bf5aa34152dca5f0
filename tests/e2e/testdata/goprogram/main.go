// Follow starts a run of two workers, prints what they write, and says how the run ended.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func main() {
	ctx := context.Background()
	c, err := client.DialContext(ctx, envconfig.MustLoadDefaultClientOptions())
	if err != nil {
		log.Fatal(err)
	}
	two := 2
	run, err := starter.Start(ctx, c, &spec.RunSpec{
		Name: "follow", Dir: "/", Command: os.Args[1:], Tasks: []spec.TaskGroup{{Type: "worker", Count: &two}},
	}, starter.Options{})
	if err != nil {
		log.Fatal(err) // all problems of the spec, or no server
	}
	if err := run.Logs(ctx, func(o starter.Output) { log.Printf("%s: %s", o.Task, o.Data) }); err != nil {
		log.Print(err) // the files of a host cannot be read; the run goes on
	}
	_, err = run.Wait(ctx)
	if failed, ok := errors.AsType[*starter.Error](err); ok {
		log.Fatalf("%s exited with %d", failed.Result.FirstFailure.Task, failed.Result.FirstFailure.ExitCode)
	}
	if err != nil {
		log.Fatal(err) // it was terminated, or is not known
	}
}
