package workers_test

import (
	"log"

	"github.com/clusterrun/clusterrun/workers"
)

// This program becomes its machine's host worker: the supervisor replaces it, and starts the side
// that polls Temporal. TEMPORAL_ADDRESS and the other variables select the server.
func Example() {
	settings, err := workers.Supervisor(workers.Options{StateDir: "/var/lib/clusterrun", Queue: "gpus", Slots: 8})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(settings.Exec(0)) // only returns on error
}
