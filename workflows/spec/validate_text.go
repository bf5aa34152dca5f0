package spec

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Linux's limits on arguments and environment. Above them, execve fails with E2BIG, which would
// happen on a host, perhaps an hour later, and be hard to understand.
const (
	// MaxStringBytes limits one argument, or one variable with its name, in bytes: MAX_ARG_STRLEN
	// without the terminating NUL.
	MaxStringBytes = 128*1024 - 1
	// MaxExecBytes limits a task's arguments and variables together, in bytes, with a NUL and a
	// pointer for each. It is a quarter of the usual 8 MiB stack, minus space for the host's
	// environment and clusterrun's variables.
	MaxExecBytes = 2<<20 - 256<<10
)

// execOverhead is execve's cost per string in addition to its bytes: a NUL and a pointer.
const execOverhead = 1 + 8

// reservedEnv is the prefix of variable names that are reserved for clusterrun.
const reservedEnv = "CLUSTERRUN_"

// checkText refuses a string that is not valid as an argument, variable or path.
func checkText(c *checker, path, text string) bool {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		c.add(path, "contains a NUL byte, which the operating system cannot pass", "remove it; put binary data into files")
	case !utf8.ValidString(text):
		c.add(path, Quote(strings.ToValidUTF8(text, "\ufffd"))+" is not valid UTF-8, and JSON would change it", "put other bytes into files")
	default:
		return true
	}
	return false
}

func checkString(c *checker, path, text string, size int) {
	if checkText(c, path, text) && size > MaxStringBytes {
		c.add(path, fmt.Sprintf("has %d bytes; Linux accepts up to %d in one argument or variable", size, MaxStringBytes), "put large data into files")
	}
}

const commandExample = "command: [python3, train.py]"

// checkCommand checks an argv that may be missing, but not empty.
func checkCommand(c *checker, path string, argv []string) {
	if argv != nil && len(argv) == 0 {
		c.add(path, "is empty", "specify the argv, such as "+commandExample+", or omit it")
	}
	if len(argv) > 0 && argv[0] == "" {
		c.add(path+"[0]", "is empty, but it names the program", "specify the program, such as "+commandExample)
	}
	checkArgs(c, path, argv)
}

func checkArgs(c *checker, path string, args []string) {
	for i, a := range args {
		// Most strings are short and plain, and do not need a path.
		if len(a) > MaxStringBytes || !plainName(a) {
			checkString(c, indexPath(path, i), a, len(a))
		}
	}
}

func checkDir(c *checker, path, dir string) {
	if checkText(c, path, dir) && dir != "" && !strings.HasPrefix(dir, "/") {
		c.add(path, Quote(dir)+" is a relative path", "write an absolute path, such as /srv/job")
	}
}

func (e Env) check(c *checker, path string) {
	for _, name := range sortedKeys(e) {
		p := fieldPath(path, name)
		switch {
		case name == "":
			c.add(path, "contains a variable without a name", envRemedy)
		case strings.Contains(name, "="):
			c.add(p, "a variable's name cannot contain =", envRemedy)
		case strings.HasPrefix(name, reservedEnv) && !IsTrialVariable(name):
			c.add(p, "names that start with "+reservedEnv+" are reserved for clusterrun", "choose another name")
		case checkText(c, p, name):
			v := e[name]
			if v.IsReference() {
				v.From.check(c, p, name)
			}
			checkString(c, p, v.Value, v.size(name))
			checkTransientFailures(c, p, name, v.Value)
		}
	}
}

// checkExecSize limits each task's argv and environment together. It works on layers instead of
// tasks because a thousand tasks share the run's.
func checkExecSize(c *checker, s *RunSpec) {
	runEnv := envBytes(s.Env)
	for i, g := range s.Tasks {
		path := indexPath("tasks", i)
		command := s.Command
		if len(g.Command) > 0 {
			command = g.Command
		}
		argv, args := stringsBytes(command), stringsBytes(g.Args)
		groupEnv := runEnv + overlaidBytes(g.Env, s.Env)
		checkExecBytes(c, path, argv+args+groupEnv)
		for _, index := range sortedKeys(g.Overrides) {
			o := g.Overrides[index]
			oArgv, oArgs := argv, args
			if len(o.Command) > 0 {
				oArgv = stringsBytes(o.Command)
			}
			if o.Args != nil {
				oArgs = stringsBytes(o.Args)
			}
			env := groupEnv + overlaidBytes(o.Env, g.Env, s.Env)
			checkExecBytes(c, fieldPath(path+".overrides", index), oArgv+oArgs+env)
		}
	}
}

func checkExecBytes(c *checker, path string, size int) {
	if size > MaxExecBytes {
		c.add(path, fmt.Sprintf("argv and env together have %d bytes; a program accepts up to %d", size, MaxExecBytes), "put large data into files")
	}
}

func stringsBytes(list []string) int {
	size := 0
	for _, s := range list {
		size += len(s) + execOverhead
	}
	return size
}

func envBytes(env Env) int { return overlaidBytes(env) }

// overlaidBytes returns how many bytes env adds to the lower layers of the environment. The
// nearest lower layer comes first.
func overlaidBytes(env Env, below ...Env) int {
	size := 0
	for _, name := range sortedKeys(env) {
		size += env[name].size(name) + execOverhead
		for _, l := range below {
			if old, ok := l[name]; ok {
				size -= old.size(name) + execOverhead
				break
			}
		}
	}
	return size
}
