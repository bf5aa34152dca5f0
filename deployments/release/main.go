// Command release writes the parts of a release that are made from the programs: manual
// pages and completions from the commands, and a list of what the programs are made of.
// The script build makes packages of them.
//
//	release share DIRECTORY          what belongs below a share directory
//	release sbom PROGRAM... > FILE   the list, as CycloneDX
//	release image FILE ARCHITECTURE CERTIFICATES PROGRAM...   a container image of the programs
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	when, err := sourceDate()
	switch {
	case err != nil:
		return err
	case len(args) == 2 && args[0] == "share":
		return writeShare(args[1], when)
	case len(args) >= 2 && args[0] == "sbom":
		return writeSBOM(os.Stdout, args[1:], when)
	case len(args) >= 5 && args[0] == "image":
		return writeImage(args[1], args[2], args[3], args[4:], when)
	}
	return errors.New("usage: release share DIRECTORY | release sbom PROGRAM [PROGRAM...] | release image FILE ARCHITECTURE CERTIFICATES PROGRAM [PROGRAM...]")
}

// sourceDate returns the time of the sources, which is used as the time of the build.
func sourceDate() (time.Time, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, errors.New("SOURCE_DATE_EPOCH must be the time of the sources, in seconds since 1970; `git log -1 --format=%ct` prints it")
	}
	return time.Unix(seconds, 0).UTC(), nil
}
