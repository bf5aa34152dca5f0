// Package help holds the topics of `clusterrun help TOPIC` and writes them as text.
//
// A topic is a file topics/GROUP/NAME.md, which is read in the repository too. The groups are by
// purpose: to start, to do something, to look something up, to understand. The first line of a
// file, "# Title", is its entry in the list of topics. All of its code is tested: see
// tests/e2e/topics_test.go for the annotations of a block of code.
package help
