// Package help holds the topics of `clusterrun help TOPIC` and writes them as text.
//
// A topic is a file topics/NAME.md, which is read in the repository too. Its first line, "#
// Title", is its entry in the list of topics. All of its code is tested: see
// tests/e2e/topics_test.go for the annotations of a block of code.
package help
