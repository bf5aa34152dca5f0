// Package peers has the launchers and libraries that clusterrun is compared with, by `make
// compare` and by the benchmarks. A launcher is an entry: how it is found, and how it is called
// for each work; a library is a Python script that prints its figures.
package peers
