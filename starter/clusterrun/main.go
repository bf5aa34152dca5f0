// Command clusterrun runs distributed programs. See package command.
package main

import (
	"os"

	"github.com/clusterrun/clusterrun/starter/command"
)

func main() { os.Exit(command.Main()) }
