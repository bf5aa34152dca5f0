// Package help holds the texts of `clusterrun help TOPIC` and `clusterrun COMMAND --help`, and
// writes topics for terminals.
//
// A topic is a file topics/GROUP/NAME.md, which is read in the repository too. The groups are by
// purpose: to start, to do something, to look something up, to understand. The first line of a
// file, "# Title", is its entry in the list of topics. All of its code is tested: see
// tests/e2e/topics_test.go for the annotations of a block of code.
//
// The description and the examples of a command are the file commands/COMMAND.txt or
// commands/GROUP/COMMAND.txt, as users see them.
package help
