// Package software records what a host and a Python environment consist of: the kernel, the
// distribution, the drivers, CUDA and NCCL of the host, and the packages of Python with their
// versions. Everything is read from files; no program is executed, and nothing is imported.
//
// The environment of a program is only known in it: it depends on the interpreter, on virtual
// environments, on PYTHONPATH and on the files of site. So the module with which each Python
// program of a task begins (activities/tasks/python) writes its version and sys.path to a file,
// [PathsFile], in the directory of the process, which takes microseconds. The host lists the
// packages later: the names and versions are in the names of their directories, as
// importlib.metadata finds them.
//
// [Write] keeps the record in [File], next to the output of the process.
package software
