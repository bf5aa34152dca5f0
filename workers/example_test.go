package workers_test

import (
	"log"

	"github.com/clusterrun/clusterrun/workers"
)

// This program becomes the host worker of its machine: the supervisor replaces it, and starts the
// side that polls Temporal. TEMPORAL_ADDRESS and the other variables name the server.
func Example() {
	settings, err := workers.Supervisor(workers.Options{StateDir: "/var/lib/clusterrun", Queue: "gpus", Slots: 8})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(settings.Exec()) // it returns only if there is an error
}
