// Command clusterrun-supervisor is the parent of a host's processes; clusterrun starts it. See
// package supervise.
package main

import (
	"os"

	"github.com/clusterrun/clusterrun/activities/process/supervise"
)

func main() { os.Exit(supervise.Main(os.Args[1:])) }
