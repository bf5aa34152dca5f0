// Command clusterrun runs the processes of a distributed program. See package command.
package main

import (
	"os"

	"github.com/clusterrun/clusterrun/starter/command"
)

func main() { os.Exit(command.Main()) }
